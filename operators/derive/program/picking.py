"""Elements whose place in one dimension comes from data, read a row at a time.

In `table[row[b], j]` every `b` picks a row, which is copied whole, where a gather would look up every
element. That takes one index from data, which does not share variables with the other indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...kernels.kernel import Array, view_of
from ..nodes.affine import AffineIndex, Ranges
from ..nodes.ir import Load, Node, union
from ..steps.steps import Value, register
from .access import OpenAccess, outside_error


@dataclass(frozen=True, slots=True)
class Picker:
    """The step that picks rows of a table.

    It is called with the table, the row numbers and, if the access is padded, the value of missing rows. The
    table has the picked dimension first, and then the `inner` axes.
    """

    tensor: str
    """The tensor's name, for error messages."""

    dimension: int
    """The dimension in which rows are picked, for error messages."""

    lower: int
    """The number of the table's first row in the whole tensor."""

    upper: int
    """The number after that of its last row."""

    outer: tuple[int, ...]
    """The axes of the result along which row numbers vary, slowest first."""

    inner: tuple[int, ...]
    """The axes of the result along a row, slowest first."""

    def __call__(self, table: Array, numbers: Array, *padding: Array, out: Array) -> None:
        """Copy the rows. Raises DataError for a number outside of the tensor if nothing is said for it."""
        found = np.asarray(numbers).astype(np.intp, copy=False)
        missing = (found < self.lower) | (found >= self.upper)
        if missing.any() and not padding:
            raise outside_error(self.tensor, self.dimension, int(found[missing][0]), (self.lower, self.upper))
        if table.size:
            places = (found - self.lower).transpose((*self.outer, *self.inner))
            shape = [out.shape[axis] for axis in self.outer]
            rows = places.reshape(places.shape[: len(self.outer)])
            target = out.transpose((*self.outer, *self.inner))
            np.take(table, np.broadcast_to(rows, shape), axis=0, out=target, mode="clip")
        if padding and missing.any():
            np.copyto(out, padding[0], where=missing, casting="same_kind")


def picked(
    load: Load, access: OpenAccess, axes: Mapping[str, int], ranges: Ranges, order: tuple[int, ...]
) -> tuple[Picker, Node, Array, Value] | None:
    """Return how an access picks rows: the step, the numbers' node, the table and a register for the result.

    None if it is not of this kind, or if its rows are not contiguous.
    """
    chosen = [n for n, index in enumerate(load.indices) if not isinstance(index, AffineIndex)]
    if len(chosen) != 1:
        return None
    (dimension,) = chosen
    numbers = load.indices[dimension]
    assert not isinstance(numbers, AffineIndex)
    others = [(n, index) for n, index in enumerate(load.indices) if isinstance(index, AffineIndex)]
    names = [name for _, index in others for name, _ in index.coefficients]
    free = numbers.free | (load.padding.free if load.padding is not None else frozenset())
    if len(set(names)) < len(names) or free & set(names):
        return None
    inner = tuple(axis for axis in order if axis in {axes[name] for name in names})
    table = _table(access, dimension, others, axes, ranges, inner)
    if table is None or not table.flags.c_contiguous:
        return None
    outer = tuple(axis for axis in order if axis not in inner)
    shape = [1] * len(axes)
    for name in union((numbers,)) | frozenset(names) | free:
        shape[axes[name]] = max(ranges[name][1] - ranges[name][0], 0)
    lower, upper = access.region[dimension]
    step = Picker(access.tensor, dimension, lower, upper, outer, inner)
    return step, numbers, table, register(tuple(shape), access.array.dtype, (*outer, *inner))


def _table(
    access: OpenAccess,
    dimension: int,
    others: list[tuple[int, AffineIndex]],
    axes: Mapping[str, int],
    ranges: Ranges,
    inner: tuple[int, ...],
) -> Array | None:
    """Return a view of the tensor with the picked dimension first, then an axis for every other variable."""
    start = [slice(0, 1)] * access.array.ndim
    lengths, strides = {}, {}
    for n, index in others:
        held = access.region[n]
        wanted = index.interval(ranges)
        if wanted[0] < held[0] or wanted[1] > held[1]:
            return None
        offset = index.constant - held[0]
        for name, coefficient in index.coefficients:
            offset += coefficient * ranges[name][0]
            lengths[axes[name]] = ranges[name][1] - ranges[name][0]
            strides[axes[name]] = coefficient * access.array.strides[n]
        start[n] = slice(offset, offset + 1)
    corner = view_of(access.array, start)
    if not corner.size:
        return None
    return np.lib.stride_tricks.as_strided(
        corner,
        (access.array.shape[dimension], *[lengths[axis] for axis in inner]),
        (access.array.strides[dimension], *[strides[axis] for axis in inner]),
    )
