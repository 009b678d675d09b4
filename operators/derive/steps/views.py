"""Element accesses as arrays with one axis per index variable."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....analyzer.indices.region import Interval
from ....errors import OperatorError
from ...kernels.kernel import Array, view_of
from ..nodes.affine import AffineIndex, Ranges


def strided(
    array: Array,
    lower: tuple[int, ...],
    indices: tuple[AffineIndex, ...],
    axes: Mapping[str, int],
    ranges: Ranges,
) -> Array:
    """Return a view with axis `axes[v]` for variable `v`, length 1 if no index mentions it.

    `lower` is the tensor index of `array`'s first element. All indices must lie inside `array`.
    """
    shape = [1] * len(axes)
    strides = [0] * len(axes)
    start = []
    for dimension, index in enumerate(indices):
        offset = index.constant - lower[dimension]
        for name, coefficient in index.coefficients:
            first, stop = ranges[name]
            offset += coefficient * first
            shape[axes[name]] = stop - first
            strides[axes[name]] += coefficient * array.strides[dimension]
        start.append(slice(offset, offset + 1))
    if 0 in shape:
        return np.empty(shape, array.dtype)
    return np.lib.stride_tricks.as_strided(view_of(array, start), shape, strides)


def check_inside(tensor: str, dimension: int, needed: Interval, region: Interval) -> None:
    """Raise `OperatorError` if a box reads elements that its input region does not hold."""
    if needed[0] < region[0] or needed[1] > region[1]:
        raise OperatorError(
            f"tensor {tensor!r}, dimension {dimension}: the box reads [{needed[0]}, {needed[1]}), but its "
            f"input holds [{region[0]}, {region[1]}); pass the region of the analysis to the kernel"
        )


def axes_view(array: Array, variables: tuple[str, ...], axes: Mapping[str, int]) -> Array:
    """Return an output array as a view with one axis per variable of the kernel."""
    shape = [1] * len(axes)
    strides = [0] * len(axes)
    for dimension, name in enumerate(variables):
        shape[axes[name]] = array.shape[dimension]
        strides[axes[name]] = array.strides[dimension]
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def narrow(array: Array, axes: Mapping[str, int], ranges: Ranges, base: Ranges) -> Array:
    """Return the part of a view over `base` that belongs to `ranges`; axes of length 1 stay."""
    slices = [slice(None)] * array.ndim
    for name, axis in axes.items():
        if array.shape[axis] != 1 and name in ranges:
            first, stop = ranges[name]
            origin = base[name][0]
            slices[axis] = slice(first - origin, stop - origin)
    return view_of(array, slices)
