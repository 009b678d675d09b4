"""Find points of a frontier that a weighted sum of time and memory finds, and lines that nothing is below.

For weights a, b >= 0, elimination finds the least sum of  a * time + b * memory,  and an assignment that has
it. Its point is on the frontier or as good in one coordinate, and the sum is a line that no assignment is
below. The weights begin with time alone and memory alone. Then the widest pair of neighbouring points is
split by the line through both, until no line finds a point below it, or enough lines are known (Aneja and
Nair, 1979). Implemented in: `split_widest` (weights), `_Search` (one sum), `supports` (both).

Between two points the lines leave a triangle in which there may be others. If many tables are added up, it is
small.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...support.integers import Integers
from .elimination import CostTable, eliminate
from .pair_table import PairTable
from .semiring import Table

TINY = 1e-6
"""Neighbours are not split if the product of the parts of time and of memory between them is smaller."""

LARGEST_SUM = 1 << 61
"""Weights are rounded down so that weighted sums stay below this."""


Point = tuple[int, int]


class Line(NamedTuple):
    """A proof: `time_weight * time + memory_weight * memory >= least` for every assignment."""

    time_weight: int
    """The weight of time."""

    memory_weight: int
    """The weight of memory."""

    least: int
    """The least weighted sum."""


@dataclass(frozen=True, slots=True)
class Supports:
    """Points of assignments, and lines."""

    assignments: dict[Point, tuple[int, ...]]
    """For each pair of time and memory that was found, an assignment that has it."""

    lines: tuple[Line, ...]
    """The lines that no assignment is below; the first is the least time, the second the least memory."""

    def least_times(self, memory: Integers) -> Integers:
        """Return for each amount of memory a bound on the time of all assignments with at most as much."""
        lowest = int(np.iinfo(np.int64).min)
        found = np.full(len(memory), lowest)
        for time_weight, memory_weight, least in self.lines:
            if time_weight:
                bounds = [-((memory_weight * size - least) // time_weight) for size in memory.tolist()]
                found = np.maximum(found, [max(bound, lowest) for bound in bounds])
        return found


def supports(domains: Sequence[int], tables: Sequence[PairTable], lines: int, table_limit: int) -> Supports:
    """Return points of the frontier of sums of tables, and at most `lines` lines, but at least two.

    Raises what `eliminate` raises.
    """
    search = _Search(domains, tables, table_limit)
    split_widest(search.support, lines)
    return Supports(search.assignments, tuple(search.lines))


def split_widest(support: Callable[[int, int], Point], most: int) -> None:
    """Ask for points with the least weighted sums, the widest gaps first; at most `most`, but at least two.

    `support` is given the weights of time and memory, and returns the point that it finds. Neighbours whose
    gap is tiny are not split.
    """
    fast, small = support(1, 0), support(0, 1)
    pairs, asked = [_pair(small, fast)], 2
    while pairs and asked < most:
        _, small, fast = heapq.heappop(pairs)
        time_weight, memory_weight = fast[1] - small[1], small[0] - fast[0]
        if time_weight <= 0 or memory_weight <= 0:
            continue
        if time_weight * memory_weight < TINY * abs(fast[0] * small[1]):
            continue
        middle = support(time_weight, memory_weight)
        asked += 1
        if middle not in (small, fast):
            heapq.heappush(pairs, _pair(small, middle))
            heapq.heappush(pairs, _pair(middle, fast))


def _pair(small: Point, fast: Point) -> tuple[int, Point, Point]:
    """Return neighbouring points behind minus the area between them, so that the widest pair comes first."""
    return (fast[1] - small[1]) * (fast[0] - small[0]), small, fast


class _Search:
    def __init__(self, domains: Sequence[int], tables: Sequence[PairTable], table_limit: int) -> None:
        self._domains = domains
        self._tables = tables
        self._table_limit = table_limit
        self._largest = max(_largest([t.times for t in tables]), _largest([t.memory for t in tables]))
        self.assignments: dict[Point, tuple[int, ...]] = {}
        self.lines: list[Line] = []

    def support(self, time_weight: int, memory_weight: int) -> Point:
        """Find the least sum with these weights; return the point that has it."""
        while (time_weight + memory_weight) * self._largest >= LARGEST_SUM:
            time_weight, memory_weight = time_weight // 2, memory_weight // 2
        weighted = _weighted(self._tables, time_weight, memory_weight)
        found = eliminate(self._domains, weighted, table_limit=self._table_limit)
        self.lines.append(Line(time_weight, memory_weight, int(found.optimum)))
        entries = [tuple([found.assignment[v] for v in table.scope]) for table in self._tables]
        point = (
            sum(int(table.times[entry]) for table, entry in zip(self._tables, entries, strict=True)),
            sum(int(table.memory[entry]) for table, entry in zip(self._tables, entries, strict=True)),
        )
        self.assignments.setdefault(point, found.assignment)
        return point


def _largest(tables: Sequence[Table]) -> int:
    return sum(int(np.abs(table).max()) for table in tables)


def _weighted(tables: Sequence[PairTable], time_weight: int, memory_weight: int) -> list[CostTable]:
    """Return the weighted sums of times and memory; tables that share arrays share one again."""
    known: dict[tuple[int, int], Table] = {}
    for _, times, memory in tables:
        key = id(times), id(memory)
        if key not in known:
            known[key] = np.asarray(
                time_weight * times.astype(np.int64) + memory_weight * memory.astype(np.int64)
            )
    return [CostTable(scope, known[id(times), id(memory)]) for scope, times, memory in tables]
