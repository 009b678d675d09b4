"""The semiring of runs of points, with limits: what elimination needs to find a frontier.

Products and unions are those of `runs`. If there is a limit on the points of an entry, they are thinned, see
`thinning`. A message loses the points that are above a limit, or above a known point, even if the rest adds
no more than the constants that were taken out so far: all tables are nowhere negative then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...support.integers import Integers
from .errors import WidthError
from .runs import NOTHING, Runs, multiplied, projected, shifted, single
from .semiring import Place, Semiring
from .thinning import thinned
from .tracing import traced


@dataclass(frozen=True, slots=True)
class Bounds:
    """The points that are wanted."""

    most_time: int
    """The largest time."""

    most_memory: int
    """The largest memory."""

    known: Integers
    """`[points, 2]`: time and memory of known points, none below another, in rising order of memory."""

    def wanted(self, times: Integers, memory: Integers) -> Any:
        """Tell which points are wanted; known points are."""
        mask = (times <= self.most_time) & (memory <= self.most_memory)
        if len(self.known):
            last = np.searchsorted(self.known[:, 1], memory, side="right") - 1
            time, size = self.known[np.maximum(last, 0)].T
            mask &= (last < 0) | (times < time) | ((times == time) & (memory == size))
        return mask


@dataclass(slots=True)
class FrontierOperations:
    """Operations on tables of runs, and whether any table was thinned.

    They raise WidthError if a table would have more points than a limit.
    """

    points_limit: int | None
    """The most points of an entry; None if there is no limit."""

    table_limit: int
    """The most points of a table."""

    corners: bool
    """Whether entries are thinned from below."""

    bounds: Bounds
    """The points that are wanted."""

    thinned: bool = field(default=False, init=False)
    """Whether a table was thinned."""

    def semiring(self) -> Semiring:
        """Return these operations as the engine takes them."""
        return Semiring(
            self.multiply, self.add, fastest, without_minima, self.project, self.bound, self.trace
        )

    def multiply(self, a: Any, b: Any) -> Any:
        return self._within(multiplied(a, b))

    def add(self, table: Any, axis: int) -> Any:
        return self._within(projected([table], axis))

    def project(self, tables: Sequence[Any], axis: int) -> Any:
        return self._within(projected(tables, axis))

    def bound(self, message: Any, constant: Any) -> Any:
        shift = NOTHING if constant is None else constant
        times, memory = message.times + shift.times, message.memory + shift.memory
        mask = self.bounds.wanted(times, memory)
        return message if mask.all() else message.kept(mask)

    def trace(self, parts: Sequence[tuple[Any, Place]], wanted: Any) -> Any:
        value, points = traced(parts, (int(wanted.times[0]), int(wanted.memory[0])))
        return value, [single(time, memory) for time, memory in points]

    def _within(self, found: Runs) -> Runs:
        if self.points_limit is not None:
            less = thinned(found, self.points_limit, corners=self.corners)
            self.thinned |= less is not found
            found = less
        if found.size > self.table_limit:
            raise WidthError(
                f"a table of {found.entries} entries has {found.size} points of time and memory; the limit "
                f"is {self.table_limit}. Limit the points of an entry, or raise the limit",
                found.size,
            )
        return found


def fastest(vector: Any) -> int:
    """Return the entry that has the point with the least time, the first of equals."""
    return int(np.searchsorted(vector.offsets, vector.times.argmin(), side="right")) - 1


def without_minima(table: Any) -> tuple[Any, Any]:
    """Subtract the least time and the least memory of all points."""
    if not table.size:
        return table, NOTHING
    time, memory = int(table.times.min()), int(table.memory.min())
    return shifted(table, -time, -memory), single(time, memory)
