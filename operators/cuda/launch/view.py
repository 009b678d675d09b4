"""Arrays in a device's memory: an address, a shape and strides, without the memory itself.

All that preparing a kernel takes, so it works on any address, on a machine without a card too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np

from ....analyzer.indices.region import Shape
from ...emit.datatypes import data_type


@dataclass(frozen=True, slots=True)
class DeviceView:
    """An array in a device's memory."""

    address: int
    """The address of the first element, in bytes."""

    shape: Shape
    """The number of elements along each axis."""

    strides: tuple[int, ...]
    """The distance of neighbours along each axis, in bytes, as NumPy's."""

    type: str
    """The element type, one of `DATA_TYPES`."""

    @classmethod
    def dense(cls, address: int, shape: Shape, type: str, order: Sequence[int] | None = None) -> DeviceView:
        """Return a view without gaps; `order` lists the axes, slowest first, and is row-major where None."""
        strides = [0] * len(shape)
        step = data_type(type).numpy.itemsize
        for axis in reversed(range(len(shape)) if order is None else order):
            strides[axis] = step
            step *= shape[axis]
        return cls(address, shape, tuple(strides), type)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type that holds the elements' bits on the host."""
        return data_type(self.type).numpy

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For CuPy and others that take arrays of a device."""
        return {
            "data": (self.address, False),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "version": 3,
        }

    def __getitem__(self, place: tuple[slice | EllipsisType, ...]) -> DeviceView:
        """Return the part that slices select, one for each of the first axes, as NumPy's views."""
        slices = [each for each in place if isinstance(each, slice)]
        address, shape, strides = self.address, list(self.shape), list(self.strides)
        for axis, each in enumerate(slices):
            start, stop, step = each.indices(self.shape[axis])
            shape[axis] = len(range(start, stop, step))
            address += start * self.strides[axis]
            strides[axis] = self.strides[axis] * step
        return replace(self, address=address, shape=tuple(shape), strides=tuple(strides))
