"""The memory layout of a call's arrays: all that a derived kernel depends on besides operator and box.

Calls with equal layouts share one recipe, whatever their memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Interval, Region, Shape
from ...kernels.kernel import Array, KernelCall
from ...kernels.workspace import aligned
from .steps import DType


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Where an array lies in memory that all arrays of a call share."""

    shape: Shape
    """The number of elements along each axis."""

    strides: tuple[int, ...]
    """The distance of neighbours along each axis, in bytes."""

    dtype: DType
    """The element type."""

    offset: int
    """The place of the first element, in bytes from the start of the memory."""


@dataclass(frozen=True, slots=True)
class CallLayout:
    """The layout of a call's arrays. Arrays that overlap lie at their own distance, others one after
    another."""

    names: tuple[str, ...]
    """The names of the inputs."""

    regions: tuple[Region, ...]
    """The region that each input holds."""

    arrays: tuple[ArrayLayout, ...]
    """The layouts of the inputs, then those of the outputs."""

    nbytes: int
    """The size of the memory that holds all arrays."""

    def templates(self) -> list[Array]:
        """Return arrays that lie as the call's do, in memory that nobody touches."""
        memory = np.empty(self.nbytes, np.uint8)
        return [
            np.ndarray(array.shape, array.dtype, memory, array.offset, array.strides) for array in self.arrays
        ]


def layout_of(call: KernelCall) -> CallLayout:
    """Return the layout of a call's inputs and outputs."""
    names = tuple(call.inputs)
    arrays = [*call.inputs.values(), *call.outputs]
    offsets, nbytes = _offsets(arrays)
    return CallLayout(
        names,
        tuple([call.regions[name] for name in names]),
        tuple(
            [
                ArrayLayout(array.shape, array.strides, array.dtype, offset)
                for array, offset in zip(arrays, offsets, strict=True)
            ]
        ),
        nbytes,
    )


def template_call(
    bound: Bound, box: Mapping[str, Interval], layout: CallLayout, templates: Sequence[Array]
) -> KernelCall:
    """Return a call of this layout, on templates."""
    inputs: Mapping[str, Array] = dict(zip(layout.names, templates, strict=False))
    regions = dict(zip(layout.names, layout.regions, strict=True))
    return KernelCall(bound, box, inputs, regions, tuple(templates[len(layout.names) :]))


def bounds(array: Array) -> tuple[int, int]:
    """Return addresses of the first byte of an array and of the one after its last."""
    return _bounds(array, address_of(array))


def address_of(array: Array) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def _bounds(array: Array, address: int) -> tuple[int, int]:
    if array.flags.c_contiguous or array.size == 0:
        return address, address + array.nbytes
    lower = upper = address
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            lower += (length - 1) * stride
        else:
            upper += (length - 1) * stride
    return lower, upper + array.itemsize


def _offsets(arrays: Sequence[Array]) -> tuple[list[int], int]:
    """Return offsets of first elements, with arrays whose bounds meet at their own distance; bytes in all.

    Separate arrays are placed in the order given, wherever they are in memory.
    """
    addresses = [address_of(array) for array in arrays]
    spans = [(*_bounds(array, addresses[index]), index) for index, array in enumerate(arrays)]
    groups: list[tuple[int, int, int, list[int]]] = []  # first index, lower and upper address, all indices
    for lower, upper, index in sorted(spans):
        if groups and lower < groups[-1][2]:
            first, start, stop, members = groups[-1]
            groups[-1] = (min(first, index), start, max(stop, upper), [*members, index])
        else:
            groups.append((index, lower, upper, [index]))
    offsets = [0] * len(arrays)
    total = 0
    for _, start, stop, members in sorted(groups):
        for index in members:
            offsets[index] = total + addresses[index] - start
        total += aligned(stop - start)
    return offsets, total
