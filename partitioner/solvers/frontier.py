"""Find the frontier of two sums of tables: the pairs of time and memory that no assignment is below in both.

    variables    x[v] in 0 .. domains[v] - 1
    objectives   time(x)   = sum over all tables of  table.times[x[v] for v in table.scope]
                 memory(x) = sum over all tables of  table.memory[x[v] for v in table.scope]
    wanted       all pairs (time(x), memory(x)) of which no other one is at most as large in both, each with
                 an assignment (TensorOpt, definition 1)

This is the elimination of `elimination` in a semiring whose entries are runs of points, see `runs`: a product
is the sums of all pairs of points, an addition the union, and both are reduced. Its operations are named in
TensorOpt, section 3.2: eliminating a variable with two neighbours is node elimination (equation 4), with one
neighbour branch elimination (equation 6) or, along a chain, a step of the linear dynamic program (algorithm
3); tables over the same pair are multiplied, which is edge elimination (equation 5). An assignment is read
back for every point, without tuples that remember how they were made: sums of points are found again.

With a limit on the points of an entry, runs are thinned from above, and once more from below, see `thinning`.
The points are then those of assignments, and no assignment is below the lower staircase. Implemented in:
`least_frontier`, `frontier_semiring`, `tracing` (read-back).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dominance import Dominance, Pruned
from .elimination import TABLE_LIMIT, CostTable, Unrolling, WidthError, unroll
from .errors import SolverError
from .pair_table import PairTable
from .runs import NOTHING, Integers, Runs, multiplied, projected, shifted, single
from .semiring import Place, Semiring, Table, TableArithmetic
from .thinning import LEAST_LIMIT, thinned
from .tracing import traced

LARGEST_SUM = 1 << 61
"""Sums of times or memory, times the number of values, must stay below this, so that no integer overflows."""


@dataclass(frozen=True, slots=True)
class FrontierOptimum:
    """The frontier of a factor graph, or points near it and a bound below it."""

    points: Integers
    """`[points, 2]`: time and memory of assignments, none below another, in rising order of memory."""

    lower: Integers
    """`[corners, 2]`: every assignment is at or above one of these pairs, in both time and memory.

    Without a limit on points these are the points.
    """

    largest_table: int
    """The number of entries of the largest table that was built."""

    _unrolling: Unrolling
    """The elimination that assignments are read back from."""

    _pruned: Pruned[PairTable]
    """The problem without dominated values, which was eliminated."""

    @property
    def proven(self) -> bool:
        """Tell whether the points are the whole frontier."""
        return np.array_equal(self.points, self.lower)

    def assignment(self, point: int) -> tuple[int, ...]:
        """Return an assignment that has the time and memory of a point, given its number."""
        time, memory = self.points[point]
        return self._pruned.original(self._unrolling.assignment(_table(single(time, memory))))


def least_frontier(
    domains: Sequence[int],
    tables: Sequence[PairTable],
    *,
    points_limit: int | None = None,
    table_limit: int = TABLE_LIMIT,
) -> FrontierOptimum:
    """Return the frontier of the sums of tables.

    If `points_limit` is given, entries of tables keep at most this number of points.

    Raises SolverError if a domain is empty, a table does not fit its variables, or costs are too large to be
    added, and WidthError if a table would have more than `table_limit` entries or points.
    """
    if points_limit is not None and points_limit < LEAST_LIMIT:
        raise SolverError(f"a limit of {points_limit} points is too small; give at least {LEAST_LIMIT}")
    pruned = Dominance().prune(domains, tables)
    given = _single_tables(pruned.cost_tables, max(domains, default=1))
    upper = _unrolled(pruned.domains, given, points_limit, table_limit, corners=False)
    points = _points(upper)
    lower = points
    if points_limit is not None:
        lower = _points(_unrolled(pruned.domains, given, points_limit, table_limit, corners=True))
    return FrontierOptimum(points, lower, upper.largest_table, upper, pruned)


def _single_tables(tables: Sequence[PairTable], values: int) -> list[CostTable]:
    """Return tables of points; those that share both arrays share one again."""
    known: dict[tuple[int, int], Table] = {}
    largest = 0
    for scope, times, memory in tables:
        key = id(times), id(memory)
        if key not in known:
            if times.shape != memory.shape:
                raise SolverError(
                    f"a table over variables {scope} has times of shape {times.shape} and memory of shape "
                    f"{memory.shape}; give both the same shape"
                )
            known[key] = _table(single(times, memory))
        if times.size:
            largest += max(int(np.abs(times).max()), int(np.abs(memory).max()))
    if largest >= LARGEST_SUM // max(values, 1):
        raise SolverError(
            f"times or memory may add up to {largest}; with {values} values of a variable, sums must stay "
            f"below {LARGEST_SUM // values}. Use a larger unit"
        )
    return [CostTable(scope, known[id(times), id(memory)]) for scope, times, memory in tables]


def _unrolled(
    domains: Sequence[int],
    tables: Sequence[CostTable],
    points_limit: int | None,
    table_limit: int,
    *,
    corners: bool,
) -> Unrolling:
    semiring = frontier_semiring(points_limit, table_limit, corners=corners)
    return unroll(domains, tables, TableArithmetic(semiring), table_limit)


def _points(unrolling: Unrolling) -> Integers:
    found = NOTHING if unrolling.optimum is None else _runs(unrolling.optimum)
    return np.stack([found.times, found.memory], axis=1)


def _table(runs: Runs) -> Table:
    """Return runs as the engine's tables, which are arrays in other semirings."""
    table: Any = runs
    return table  # type: ignore[no-any-return]


def _runs(table: Table) -> Runs:
    assert isinstance(table, Runs), "a table of this semiring is a table of runs"
    return table


def frontier_semiring(points_limit: int | None, table_limit: int, *, corners: bool) -> Semiring:
    """Return the semiring of runs of points, thinned to a limit if there is one.

    Its operations raise WidthError if a table would have more than `table_limit` points.
    """

    def within(found: Runs) -> Any:
        if points_limit is not None:
            found = thinned(found, points_limit, corners=corners)
        if found.size > table_limit:
            raise WidthError(
                f"a table of {found.entries} entries has {found.size} points of time and memory; the limit "
                f"is {table_limit}. Limit the points of an entry, or raise the limit",
                found.size,
            )
        return found

    def multiply(a: Any, b: Any) -> Any:
        return within(multiplied(a, b))

    def add(table: Any, axis: int) -> Any:
        return within(projected([table], axis))

    def project(tables: Sequence[Any], axis: int) -> Any:
        return within(projected(tables, axis))

    def trace(parts: Sequence[tuple[Any, Place]], wanted: Any) -> Any:
        value, points = traced(parts, (int(wanted.times[0]), int(wanted.memory[0])))
        return value, [single(time, memory) for time, memory in points]

    return Semiring(multiply, add, _fastest, _without_minima, project, trace)


def _fastest(vector: Any) -> int:
    """Return the entry that has the point with the least time, the first of equals."""
    return int(np.searchsorted(vector.offsets, vector.times.argmin(), side="right")) - 1


def _without_minima(table: Any) -> tuple[Any, Any]:
    """Subtract the least time and the least memory of all points."""
    if not table.size:
        return table, _table(NOTHING)
    time, memory = int(table.times.min()), int(table.memory.min())
    return shifted(table, -time, -memory), _table(single(time, memory))
