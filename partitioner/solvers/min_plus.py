"""The semiring of costs, (min, +): tables are multiplied by adding their entries, and projected by minima.

Large tables are summed and minimised at once in compiled loops if numba is installed (the extra `search`),
and piece by piece by NumPy otherwise. Entries are integers, or integers held in float64, so both have the
same results. Smaller tables are not worth the time that importing numba takes, which is as long as NumPy
needs for hundreds of them. Implemented in: `MIN_PLUS`, and `min_plus_loops` (the loops).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...support.distinct_rows import distinct_rows
from .semiring import PIECE_ENTRIES, Semiring, Table, project_in_pieces

COMPILED_SUMS = 1 << 18
"""The number of sums from which on loops are compiled."""

IMPORTED_SUMS = 1 << 22
"""The number of sums from which on a single pass over tables imports numba, unless that is done."""

FEW_DIFFERENCES = 1 << 12
"""Up to this number of differences of rows, equal rows are not looked for."""

FACTOR_LIMIT = 1 << 23
"""The most entries of a sum of tables that a compiled loop reads."""


def compiled_loops(sums: int) -> Any:
    """Return the module of compiled loops; None for fewer than `COMPILED_SUMS`, or without numba."""
    if sums < COMPILED_SUMS:
        return None
    from ...support.compiled import compiler

    if compiler() is None:
        return None
    from . import min_plus_loops

    return min_plus_loops


def _loops_of_one_pass(sums: int) -> Any:
    """Return the module of compiled loops for a single pass; None if importing them takes longer."""
    if sums < IMPORTED_SUMS and f"{__package__}.min_plus_loops" not in sys.modules:
        return None
    return compiled_loops(sums)


def least_differences(rows: Table) -> Table:
    """Compute `[a, b]`: the least of `rows[a, c] - rows[b, c]` over all `c`."""
    if len(rows) * rows.size <= FEW_DIFFERENCES:
        few: Table = (rows[:, None] - rows[None]).min(axis=-1)
        return few
    first, number = distinct_rows(rows)
    different = rows[first]
    count, length = different.shape
    loops = _loops_of_one_pass(count * count * length)
    if loops is None:
        found: Table = (different[:, None] - different[None]).min(axis=-1)
    else:
        found = np.empty((count, count), rows.dtype)
        loops.least_differences(_as_loops_read(different), found)
    return found if count == len(rows) else found[number[:, None], number]


def _minimum(table: Table, axis: int) -> Table:
    return np.asarray(table.min(axis=axis))


def _first_minimum(vector: Table) -> int:
    return int(vector.argmin())


def _without_minimum(table: Table) -> tuple[Table, Table]:
    """Subtract the minimum of integers, which is exact; leave other tables unchanged."""
    if table.dtype.kind not in "iu":
        return table, np.zeros((), table.dtype)
    least = np.asarray(table.min())
    return table - least, least


def _project(tables: Sequence[Table], axis: int) -> Table:
    """Add tables and minimise along an axis.

    A compiled loop adds two tables: the sum of those along the longest axis that is left, and of the others.
    """
    if math.prod([table.size for table in tables]) <= PIECE_ENTRIES:
        return np.asarray(reduce(np.add, tables).min(axis=axis))
    shape = np.broadcast_shapes(*[table.shape for table in tables])
    left = [other for other in range(len(shape)) if other != axis]
    longest = max(left, key=lambda other: shape[other], default=axis)
    loops = _loops_of_one_pass(math.prod(shape))
    if loops is None or longest == axis or shape[longest] == 1:
        return project_in_pieces(MIN_PLUS, tables, axis)
    outer = [other for other in left if other != longest]
    none = np.zeros((1,) * len(shape), np.result_type(*tables))
    groups = [[none], []]
    for table in tables:
        groups[table.shape[longest] > 1].append(table)
    sizes = [math.prod(np.broadcast_shapes(*[table.shape for table in group])) for group in groups]
    if max(sizes) > FACTOR_LIMIT:
        return project_in_pieces(MIN_PLUS, tables, axis)
    first, second = (reduce(np.add, group).transpose(*outer, axis, longest) for group in groups)
    extents = tuple([shape[other] for other in outer])
    least = np.empty((math.prod(extents), shape[longest]), none.dtype)
    loops.least_products(
        _as_loops_read(_along(first, shape[axis])[..., 0].reshape(-1, shape[axis])),
        _as_loops_read(_along(second, shape[axis]).reshape(-1, shape[axis], shape[longest])),
        _row_numbers(first.shape[:-2], extents),
        _row_numbers(second.shape[:-2], extents),
        least,
    )
    return np.moveaxis(least.reshape(*extents, shape[longest]), -1, left.index(longest))


def _along(table: Table, extent: int) -> Table:
    """Return a table with `extent` entries along its last axis but one."""
    return np.broadcast_to(table, (*table.shape[:-2], extent, table.shape[-1]))


def _row_numbers(own: tuple[int, ...], extents: tuple[int, ...]) -> Table:
    """Return, for every place in `extents`, the number of the row of a table that is broadcast to it."""
    numbers = np.arange(math.prod(own)).reshape(own)
    return _as_loops_read(np.broadcast_to(numbers, extents).reshape(-1))


def _as_loops_read(table: Table) -> Table:
    """Return a table that is contiguous and writable: loops are compiled once for each kind of array."""
    return np.require(table, requirements=("C", "W"))


MIN_PLUS = Semiring(np.add, _minimum, _first_minimum, _without_minimum, _project)
