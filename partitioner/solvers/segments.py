"""Cut an ordered problem into a row of segments at its waists, where at most two variables are open.

    cost(x)  =  sum over the segments s of  cost[s](x)
             =  sum over the segments s of  (cost[s](x) + moved[s](x) - moved[s + 1](x))

Two segments share no costs: a segment has the costs of its own variables, and of the waist before it only the
choices. Here `moved[s]` depends on the choices at the waist before segment `s` alone, and is zero before the
first segment and after the last one. So costs may move between two segments that meet: one adds an amount for
every choice at their waist, the other takes it off, and the sum stays the same. Implemented in: `segments`
(the cut), `Segment.shifted` (the moved amounts).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .message_passing import Reweighted
from .pairwise import Costs, Pair, Pairwise

SHORTEST = 20
"""The smallest number of variables of a segment."""

WAIST_LIMIT = 1 << 14
"""The largest number of choices for the open variables of a waist."""

LONGEST = 400
"""The largest number of variables of a segment; a problem with longer ones is not cut."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of variables between two waists."""

    variables: tuple[int, ...]
    """The variables of the whole problem, ascending."""

    before: tuple[int, ...]
    """The places among them of the variables that are open at the waist before."""

    after: tuple[int, ...]
    """The places among them of the variables that are open at the waist after."""

    problem: Pairwise
    """The costs of the variables."""

    def shifted(self, before: Costs, after: Costs) -> Pairwise:
        """Return the segment's costs with `before` added at one waist and `after` taken off at the other.

        Two variables at a waist have a table even if nothing moves, so all results have the same pairs.
        """
        unary, tables = list(self.problem.unary), dict(self.problem.tables)
        for places, costs in ((self.before, before), (self.after, -after)):
            match places:
                case (place,):
                    unary[place] = unary[place] + costs
                case (first, second):
                    tables[first, second] = tables.get((first, second), 0.0) + costs
        return Pairwise(self.problem.domains, 0.0, tuple(unary), dict(sorted(tables.items())))

    def extents(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.problem.domains[place] for place in places)


def segments(problem: Reweighted) -> list[Segment]:
    """Return all segments in order; none if the problem has too few waists."""
    opened = _open(problem)
    ends = _waists(problem, opened)
    starts = [0, *(end + 1 for end in ends[:-1])]
    if len(ends) < 2 or max(end - start for start, end in zip(starts, ends, strict=True)) > LONGEST:
        return []
    tables: list[list[Pair]] = [[] for _ in problem.domains]
    for a, b in problem.tables:
        tables[b].append((a, b))
    found = []
    for start, end in zip(starts, ends, strict=True):
        before = opened[start - 1] if start else ()
        variables = (*before, *range(start, end + 1))
        place = {variable: position for position, variable in enumerate(variables)}
        own = [problem.unary[v] if v >= start else np.zeros(problem.domains[v]) for v in variables]
        pairs = {
            (place[a], place[b]): problem.tables[a, b] for v in range(start, end + 1) for a, b in tables[v]
        }
        domains = tuple(problem.domains[v] for v in variables)
        after = tuple(place[v] for v in opened[end])
        whole = Pairwise(domains, 0.0, tuple(own), pairs)
        found.append(Segment(variables, tuple(range(len(before))), after, whole))
    return found


def _open(problem: Reweighted) -> list[tuple[int, ...]]:
    """After every variable, those so far that have a neighbour still to come."""
    last = list(range(len(problem.domains)))
    for a, b in problem.tables:
        last[a] = max(last[a], b)
    found: list[tuple[int, ...]] = []
    now: tuple[int, ...] = ()
    for variable in range(len(last)):
        now = tuple(v for v in (*now, variable) if last[v] > variable)
        found.append(now)
    return found


def _waists(problem: Reweighted, opened: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the variables after which to cut; the last one is always among them."""
    end = len(opened) - 1
    found = [-1]
    for variable, now in enumerate(opened):
        narrow = len(now) <= 2 and math.prod(problem.domains[v] for v in now) <= WAIST_LIMIT
        if narrow and variable - found[-1] >= SHORTEST and end - variable >= SHORTEST:
            found.append(variable)
    return [*found[1:], end]
