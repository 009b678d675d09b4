"""Read a tensor in a kernel: through a view, a padded copy, or by gathering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ....analyzer.indices.region import Region
from ....errors import DataError
from ...kernels.complement import borders
from ...kernels.kernel import Array, KernelCall, view_of
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.blocks import volume
from ..nodes.build import NodeBuilder
from ..nodes.ir import Constant, Load, Scalar
from ..steps.steps import Steps, fixed
from ..steps.views import check_inside, strided
from .selection import selected

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OpenAccess:
    """A tensor as one access reads it."""

    tensor: str
    """The tensor's name."""

    array: Array
    """The elements of the region that the call was given."""

    region: Region
    """The region that `array` holds, in the coordinates of the whole tensor."""

    view: Array | None
    """The elements over the whole box, with an axis for each variable; None if they are gathered."""


def gather(tensor: str, region: Region, count: int, array: Array, *arguments: Array, out: Array) -> None:
    """`arguments` are `index_0, ..., index_n-1, [padding]`, indices in the whole tensor's coordinates.

    Raises `DataError` if an index from data leaves the tensor and the access is not padded.
    """
    indices = [np.asarray(index).astype(np.intp, copy=False) for index in arguments[:count]]
    outside: Mask | None = None
    for dimension, (index, (lower, upper)) in enumerate(zip(indices, region, strict=True)):
        wrong: Mask = (index < lower) | (index >= upper)
        if wrong.any():
            if len(arguments) == count:
                raise outside_error(tensor, dimension, int(index[wrong][0]), (lower, upper))
            outside = wrong if outside is None else outside | wrong
        indices[dimension] = np.clip(index, lower, max(upper - 1, lower)) - lower
    if outside is None:
        np.copyto(out, array[tuple(indices)])
    elif array.size == 0:
        np.copyto(out, arguments[count], casting="same_kind")
    else:
        np.copyto(out, array[tuple(indices)])
        np.copyto(out, arguments[count], where=outside, casting="same_kind")


def outside_error(tensor: str, dimension: int, index: int, held: tuple[int, int]) -> DataError:
    """Describe the error for an index from data that leaves its tensor."""
    return DataError(
        f"tensor {tensor!r}, dimension {dimension}: index {index} is outside [{held[0]}, {held[1]}); "
        "correct the data it is from or write pad(...)"
    )


def open_access(
    load: Load, call: KernelCall, axes: Mapping[str, int], box: Ranges, steps: Steps
) -> OpenAccess:
    """Decide how the elements of one access are read; a copy adds steps that refresh it."""
    copies = Steps()
    view = _view(load, call, axes, box, copies)
    if view is not None:
        steps.include(copies)
    return OpenAccess(load.tensor, call.inputs[load.tensor], call.regions[load.tensor], view)


def _view(load: Load, call: KernelCall, axes: Mapping[str, int], box: Ranges, steps: Steps) -> Array | None:
    """Return the elements over the whole box, or those of a copy; None if they are gathered."""
    array, region = call.inputs[load.tensor], call.regions[load.tensor]
    indices = tuple(index for index in load.indices if isinstance(index, AffineIndex))
    accessed = volume(load.free, box)
    if not load.affine and accessed:
        rows = selected(load, array, region, NodeBuilder(call.bound.shapes, box), accessed, steps)
        if rows is not None:
            array, region, indices = rows
    if len(indices) < len(load.indices):
        return None
    if not accessed:
        return strided(array, (0,) * len(indices), indices, axes, box)
    wanted = tuple(index.interval(box) for index in indices)
    if array.size == 0 and any(first >= stop for first, stop in box.values()):
        # another variable has no values, so nothing is read, wherever the indices alone would lead
        array, region = np.zeros([high - low for low, high in wanted], array.dtype), wanted
    pairs = list(zip(wanted, region, strict=True))
    if load.padding is None or all(low >= first and high <= last for (low, high), (first, last) in pairs):
        for dimension, (interval, held) in enumerate(pairs):
            check_inside(load.tensor, dimension, interval, held)
        return strided(array, tuple(first for first, _ in region), indices, axes, box)
    if isinstance(load.padding, Constant) and _worth_padding(wanted, region, accessed):
        padded = _padded(load, array, wanted, region, steps)
        return strided(padded, tuple(low for low, _ in wanted), indices, axes, box)
    return None


def _worth_padding(wanted: Region, region: Region, accessed: int) -> bool:
    """Return whether a padded copy is of the size of what is read, not of a far larger gap around it."""
    copied = prod(high - low for low, high in wanted)
    held = prod(max(upper - lower, 0) for lower, upper in region)
    return copied <= 4 * (held + accessed)


def _padded(load: Load, array: Array, wanted: Region, region: Region, steps: Steps) -> Array:
    """Return a copy of the wanted region; steps fill its borders and copy the elements that the
    input holds.
    """
    assert isinstance(load.padding, Constant)
    value = load.padding.value
    copy = steps.whole(tuple(high - low for low, high in wanted), array.dtype)
    source, target = [], []
    for (low, high), held in zip(wanted, region, strict=True):
        first, last = max(low, held[0]), min(high, held[1])
        if first >= last:
            steps.add(_fill, (value,), fixed(copy), inplace=False)
            return copy
        source.append(slice(first - held[0], last - held[0]))
        target.append(slice(first - low, last - low))
    for border in borders(copy, target):
        steps.add(_fill, (value,), fixed(border), inplace=False)
    steps.add(_refresh, (fixed(view_of(array, source)),), fixed(view_of(copy, target)), inplace=False)
    return copy


def _fill(value: Scalar, out: Array) -> None:
    out.fill(value)


def _refresh(source: Array, out: Array) -> None:
    np.copyto(out, source)
