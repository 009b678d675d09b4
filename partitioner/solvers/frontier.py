"""Find the frontier of two sums of tables: the pairs of time and memory that no assignment is below in both.

    variables    x[v] in 0 .. domains[v] - 1
    objectives   time(x)   = sum over all tables of  table.times[x[v] for v in table.scope]
                 memory(x) = sum over all tables of  table.memory[x[v] for v in table.scope]
    wanted       all pairs (time(x), memory(x)) of which no other one is at most as large in both, each with
                 an assignment (TensorOpt, definition 1)

This is the elimination of `elimination` in a semiring whose entries are runs of points, see
`frontier_semiring`. A product is the sums of all pairs of points, an addition the union, and both are
reduced. TensorOpt, section 3.2, names its cases. Eliminating a variable with two neighbours is node
elimination (equation 4), with one neighbour branch elimination (equation 6) or, along a chain, a step of the
linear dynamic program (algorithm 3). Tables over the same pair are multiplied, which is edge elimination
(equation 5). An assignment is read back for every point, without tuples that remember how they were made:
sums of points are found again.

With a limit on the points of an entry, runs are thinned from above, and once more from below. Lines below all
assignments are known from weighted sums, together with points on them. The points are then those of
assignments, and no assignment is below the lower staircase, which is the higher of both bounds. Implemented
in: `least_frontier`, `thinning` (both passes), `supported` (lines), `_raised` (the higher bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...support.integers import Integers
from .dominance import Dominance, Pruned
from .elimination import TABLE_LIMIT, CostTable, Unrolling, unroll
from .errors import SolverError
from .frontier_semiring import Bounds, FrontierOperations
from .pair_table import PairTable
from .runs import NOTHING, Runs, reduced, single
from .semiring import Table, TableArithmetic
from .supported import Point, Supports, supports
from .thinning import LEAST_LIMIT

LARGEST_SUM = 1 << 60
"""Sums of times or memory must stay below this, so that no integer overflows."""

LINES = 64
"""The number of weighted sums that are found if points are thinned."""

STEPS = 256
"""The number of steps of a lower staircase, besides those at points."""


@dataclass(frozen=True, slots=True)
class FrontierOptimum:
    """The frontier of a factor graph, or points near it and a bound below it."""

    points: Integers
    """`[points, 2]`: time and memory of assignments, none below another, in rising order of memory."""

    lower: Integers
    """`[corners, 2]`: every assignment within the limits is at or above one of these in both coordinates.

    If no entry was thinned, these are the points.
    """

    largest_table: int
    """The number of entries of the largest table that was built."""

    _unrolling: Unrolling
    """The elimination that assignments are read back from."""

    _pruned: Pruned[PairTable]
    """The problem without dominated values, which was eliminated."""

    _assignments: dict[Point, tuple[int, ...]]
    """Assignments of points that are known from weighted sums, to the values of the pruned problem."""

    @property
    def proven(self) -> bool:
        """Tell whether the points are the whole frontier."""
        return np.array_equal(self.points, self.lower)

    def assignment(self, point: int) -> tuple[int, ...]:
        """Return an assignment that has the time and memory of a point, given its number."""
        time, memory = self.points[point].tolist()
        found = self._assignments.get((time, memory))
        if found is None:
            found = self._unrolling.assignment(_table(single(time, memory)))
        return self._pruned.original(found)


def least_frontier(
    domains: Sequence[int],
    tables: Sequence[PairTable],
    *,
    time_limit: int | None = None,
    memory_limit: int | None = None,
    points_limit: int | None = None,
    table_limit: int = TABLE_LIMIT,
) -> FrontierOptimum:
    """Return the frontier of the sums of tables, as far as it is within limits of time and memory.

    If no assignment is within the limits, there are no points. If `points_limit` is given, entries of tables
    keep at most this number of points, and the result states both staircases.

    Raises SolverError if a domain is empty, a table does not fit its variables, or costs are too large to be
    added, and WidthError if a table would have more than `table_limit` entries or points.
    """
    if points_limit is not None and points_limit < LEAST_LIMIT:
        raise SolverError(f"a limit of {points_limit} points is too small; give at least {LEAST_LIMIT}")
    most = _check(domains, tables)
    pruned = Dominance().prune(domains, tables)
    given = _single_tables(pruned.cost_tables)
    bounds = Bounds(
        most if time_limit is None else time_limit,
        most if memory_limit is None else memory_limit,
        np.zeros((0, 2), np.int64),
    )

    def passed(bounds: Bounds, *, corners: bool) -> tuple[Unrolling, Integers, bool]:
        operations = FrontierOperations(points_limit, table_limit, corners, bounds)
        unrolling = unroll(pruned.domains, given, TableArithmetic(operations.semiring()), table_limit)
        found = NOTHING if unrolling.optimum is None else _runs(unrolling.optimum)
        points = np.stack([found.times, found.memory], axis=1)
        return unrolling, points[bounds.wanted(*points.T)], operations.thinned

    unrolling, points, thinned = passed(bounds, corners=False)
    if not thinned:
        return FrontierOptimum(points, points, unrolling.largest_table, unrolling, pruned, {})
    known = supports(pruned.domains, pruned.cost_tables, LINES, table_limit)
    supported = np.array([*known.assignments], np.int64)
    points = _frontier([points, supported[bounds.wanted(*supported.T)]])
    _, corners, _ = passed(replace(bounds, known=points), corners=True)
    lower = _raised(_frontier([points, corners]), points, known)
    return FrontierOptimum(points, lower, unrolling.largest_table, unrolling, pruned, known.assignments)


def _check(domains: Sequence[int], tables: Sequence[PairTable]) -> int:
    """Check that tables fit their variables and can be added up; return more than any sum."""
    most = 1
    for variable, domain in enumerate(domains):
        if domain < 1:
            raise SolverError(f"variable {variable} has no value to choose from")
    for scope, times, memory in tables:
        expected = tuple([domains[v] if 0 <= v < len(domains) else -1 for v in scope])
        if times.shape != expected or memory.shape != expected or len(set(scope)) != len(scope):
            raise SolverError(
                f"a table over variables {scope} has times of shape {times.shape} and memory of shape "
                f"{memory.shape}; their domains are {expected}"
            )
        most += max(int(np.abs(times).max()), int(np.abs(memory).max()))
    if most >= LARGEST_SUM:
        raise SolverError(
            f"times or memory may add up to {most}; sums must stay below {LARGEST_SUM}. Use a larger unit"
        )
    return most


def _single_tables(tables: Sequence[PairTable]) -> list[CostTable]:
    """Return tables of points that are nowhere negative, and a constant. Shared arrays become one table."""
    known: dict[tuple[int, int], Table] = {}
    time, size = 0, 0
    found = []
    for scope, times, memory in tables:
        least_time, least_size = int(times.min()), int(memory.min())
        time, size = time + least_time, size + least_size
        key = id(times), id(memory)
        if key not in known:
            known[key] = _table(single(times - least_time, memory - least_size))
        found.append(CostTable(scope, known[key]))
    return [*found, CostTable((), _table(single(time, size)))]


def _frontier(points: Sequence[Integers]) -> Integers:
    """Return the points that no other one is below, in rising order of memory."""
    together = np.concatenate(points)
    _, times, memory = reduced(np.zeros(len(together), np.int64), together[:, 0], together[:, 1], 1)
    return np.stack([times, memory], axis=1)


def _raised(corners: Integers, points: Integers, known: Supports) -> Integers:
    """Return the higher of a staircase of corners and lines, as a staircase.

    Between two of its amounts of memory, a bound that falls is at least as high as just below the second. So
    a step of one unit at a point on a line proves the point.
    """
    if not len(corners):
        return corners
    even = np.linspace(corners[0, 1], corners[-1, 1], STEPS).astype(np.int64)
    memory = np.unique(np.concatenate([corners[:, 1], points[:, 1], points[:, 1] + 1, even]))
    memory = memory[memory >= corners[0, 1]]
    below = np.append(memory[1:] - 1, LARGEST_SUM)
    times = corners[np.searchsorted(corners[:, 1], below, side="right") - 1, 0]
    return _frontier([np.stack([np.maximum(times, known.least_times(below)), memory], axis=1)])


def _table(runs: Runs) -> Table:
    """Return runs as the engine's tables, which are arrays in other semirings."""
    table: Any = runs
    return table  # type: ignore[no-any-return]


def _runs(table: Table) -> Runs:
    assert isinstance(table, Runs), "a table of this semiring is a table of runs"
    return table
