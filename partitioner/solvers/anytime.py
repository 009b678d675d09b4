"""Improve a good assignment of a wide problem to the best one, or prove how far it can be from the best.

    given    domains, tables over pairs that are nowhere negative, an assignment's cost
    wanted   a cost and a bound with  bound <= the least sum of all tables <= cost,  as near as possible

1. Variables with at most two neighbours are eliminated (`pairwise.core`), the others are put in a line
   (`linear_order`).
2. Costs are moved between variables and tables until the sum of all minima, a bound, hardly rises
   (`message_passing`).
3. If the line has waists, the least cost of a segment, for every choice at its end, is passed from segment to
   segment, forwards and backwards (`segment_passing`). Otherwise windows of the line are searched exactly,
   and the least costs of disjoint windows add up (`window_bounds`). Both search by `bounded_search`.
4. Assignments of few values that cost little next to the bound are searched on the way (`few_values`), after
   1, 2, 4, 8 ... times as many sweeps, and after the last. The best of them is improved by rounds in which
   few variables keep their values (`held_values`).

The amount of work depends on the problem alone, not on the clock, so the same problem has the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .elimination import CostTable
from .few_values import of_few_values
from .held_values import improved
from .linear_order import linear_order
from .message_passing import MessagePassing, Reweighted
from .pairwise import EXACT_LIMIT, Core, Pairwise, core
from .segment_passing import SegmentPassing
from .segments import Segment, segments
from .semiring import Table
from .window_bounds import STATE_LIMITS, WindowBounds

SWEEPS_AT_ONCE = 25
"""The number of sweeps between two checks of their progress."""

SWEEP_ENTRY_LIMIT = 48 << 30
"""The number of table entries that all sweeps together may read."""

SEARCH_ENTRY_LIMIT = 13 << 30
"""The number of costs that a search for a bound may compute, estimated beforehand: about half a minute in
compiled loops."""

RELAY_STATES = (200_000, 400_000, 800_000)
"""The states that a segment may need, for each pass forwards and backwards."""

BACK_AND_FORTH = 4
"""The work of a pass back and the next pass forward, as a multiple of the pass forward before."""

DIVE_STATES = 1 << 13
"""The states that a segment may need if only a good assignment is wanted."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The limits of work."""

    sweep_entries: int = SWEEP_ENTRY_LIMIT
    """The number of table entries that sweeps may read."""

    search_entries: int = SEARCH_ENTRY_LIMIT
    """The number of costs that each search for a bound may compute; without any, sweeps are all."""

    least_gain: float = 0.015
    """Sweeps end when `SWEEPS_AT_ONCE` of them close less than this part of the gap."""


WHOLE_EFFORT = Effort()

Report = Callable[[int, int], None]
"""Called with the cost of the best assignment and the bound whenever one of them improves."""


def unheard(cost: int, bound: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The best cost known and the proven bound."""

    cost: int
    """The cost of the best assignment known."""

    bound: int
    """A lower bound on the cost of every assignment."""

    assignment: tuple[int, ...] | None
    """The best assignment; None if none better than the given one was found."""


def close_gap(
    domains: Sequence[int],
    cost_tables: Sequence[CostTable],
    cost: int,
    report: Report,
    effort: Effort = WHOLE_EFFORT,
    known: Sequence[int] | None = None,
) -> Gap:
    """Improve on an assignment that costs `cost`, or prove that none is better.

    `known` is such an assignment, if there is one; the search for better ones keeps its values. Factors are
    over pairs and nowhere negative. If their entries are too large to be added in float64, the bound is
    rounded down, see `rounded`, and may stay below the cost.
    """
    smaller, unit = rounded(cost_tables, cost, EXACT_LIMIT)
    if unit == 1:
        return _Search(core(domains, smaller), cost, report, effort, known).run()

    def in_units(_: int, bound: int) -> None:
        report(cost, min(bound * unit, cost))

    found = _Search(core(domains, smaller), cost // unit + 1, in_units, effort, known).run()
    bound = min(found.bound * unit, cost)
    if found.assignment is None:
        return Gap(cost, bound, None)
    better = sum(int(f.table[tuple(found.assignment[v] for v in f.scope)]) for f in cost_tables)
    if better >= cost:
        return Gap(cost, bound, None)
    report(better, min(bound, better))
    return Gap(better, min(bound, better), found.assignment)


class _Search:
    def __init__(
        self, whole: Core, cost: int, report: Report, effort: Effort, known: Sequence[int] | None
    ) -> None:
        self._whole = whole
        self._cost = cost
        self._bound = 0
        self._assignment: tuple[int, ...] | None = None
        self._report = report
        self._effort = effort
        problem = whole.problem
        self._order = linear_order(problem.neighbours(), problem.domains)
        self._known: tuple[int, ...] | None = None
        if known is not None:
            self._known = tuple(known[whole.variables[v]] for v in self._order)
            self._improve(self._known, backwards=False)

    def run(self) -> Gap:
        messages = self._sweep(self._whole.problem.reordered(self._order))
        problem = messages.reweighted()
        self._prove(problem.bound)
        row = segments(problem) if self._effort.search_entries else []
        if row:
            self._pass_on(problem, row)
        elif self._effort.search_entries:
            self._windows(messages)
        complete = None if self._assignment is None else self._whole.complete(self._assignment)
        return Gap(self._cost, self._bound, complete)

    def _pass_on(self, problem: Reweighted, row: Sequence[Segment]) -> None:
        """Pass costs along the segments, forwards and backwards, and dive with the result of the first pass.

        The passes end if another one with as much work as the last would exceed the limit. A pass back raises
        the bound only together with the next pass forward, so both must fit, see `BACK_AND_FORTH`.
        """
        passing, last = SegmentPassing(row, float(self._cost - problem.bound)), 0
        for state_limit in RELAY_STATES:
            for backwards in (False, True):
                ahead = BACK_AND_FORTH * last if backwards else last
                if passing.entries + ahead >= self._effort.search_entries or self._cost <= self._bound:
                    return
                before = passing.entries
                passing.hand_on(backwards, state_limit, self._rise(problem))
                passing.gap = float(self._cost - problem.bound - passing.bound)
                if not backwards and self._bound < self._cost:
                    found = passing.dive(backwards=True, state_limit=DIVE_STATES)
                    if found is not None:
                        self._improve(found, backwards=False)
                    passing.gap = float(self._cost - problem.bound - passing.bound)
                last = passing.entries - before

    def _windows(self, messages: MessagePassing) -> None:
        """Search windows of the order, from its better end."""
        tries = [self._begin(messages, backwards) for backwards in (False, True)]
        best, backwards = min(tries, key=lambda found: found[0].promise)
        best.best = float(self._cost - best.problem.bound)
        self._close(best, STATE_LIMITS[1:], backwards=backwards)

    def _sweep(self, problem: Pairwise) -> MessagePassing:
        messages = MessagePassing(problem)
        known = self._known
        entries = 2 * sum(table.size for table in problem.tables.values()) * SWEEPS_AT_ONCE
        for times in range(1, max(self._effort.sweep_entries // max(entries, 1), 1) + 1):
            before = self._cost - self._bound
            for _ in range(SWEEPS_AT_ONCE):
                bound = messages.sweep()
            self._prove(bound)
            most = (1 - self._effort.least_gain) * before
            if times.bit_count() == 1 or self._cost - self._bound >= most:
                known = of_few_values(problem, messages.marginals(), known)
                self._improve(known, backwards=False)
            if self._cost - self._bound >= most:
                break
        if known is not None and self._bound < self._cost:
            self._improve(improved(problem, known), backwards=False)
        return messages

    def _begin(self, messages: MessagePassing, backwards: bool) -> tuple[WindowBounds, bool]:
        """Search for the bound that few states prove."""
        problem = messages.reweighted(backwards)
        self._prove(problem.bound)
        windows = WindowBounds(problem, float(self._cost - problem.bound))
        self._close(windows, STATE_LIMITS[:1], backwards=backwards)
        return windows, backwards

    def _close(self, windows: WindowBounds, states: Sequence[int], *, backwards: bool) -> None:
        windows.run(states, self._effort.search_entries, self._rise(windows.problem))
        if windows.assignment is not None:
            self._improve(windows.assignment, backwards=backwards)

    def _rise(self, problem: Reweighted) -> Callable[[float], None]:
        """Return what is called with a bound on the costs of a problem beyond its own bound."""
        return lambda bound: self._prove(problem.bound + int(bound))

    def _prove(self, bound: int) -> None:
        if bound > self._bound:
            self._bound = min(bound, self._cost)
            self._report(self._cost, self._bound)

    def _improve(self, assignment: tuple[int, ...], *, backwards: bool) -> None:
        order = self._order[::-1] if backwards else self._order
        by_variable = [0] * len(order)
        for variable, value in zip(order, assignment, strict=True):
            by_variable[variable] = value
        cost = self._whole.problem.cost(by_variable)
        if cost < self._cost:
            self._cost, self._assignment = cost, tuple(by_variable)
            self._report(self._cost, self._bound)


def rounded(cost_tables: Sequence[CostTable], cost: int, limit: int) -> tuple[list[CostTable], int]:
    """Return tables whose largest entries add up to less than `limit`, and their unit.

    Entries must not be negative. For every assignment that costs less than `cost`, the new tables times
    the unit add up to no more than it costs, and to just that if the unit is 1.

    An entry that alone exceeds a known cost is reduced to just above that cost. It belongs to no better
    assignment, so nothing is lost. If this is not enough, costs are counted in whole units, rounded down, so
    a lower bound in units is still a lower bound in costs.
    """
    largest = sum(min(int(cost_table.table.max()), cost + 1) for cost_table in cost_tables)
    unit = largest // limit + 1
    if unit == 1 and largest == sum(int(cost_table.table.max()) for cost_table in cost_tables):
        return list(cost_tables), 1
    known: dict[int, Table] = {}
    for cost_table in cost_tables:
        if id(cost_table.table) not in known:
            known[id(cost_table.table)] = np.minimum(cost_table.table, cost + 1) // unit
    return [cost_table._replace(table=known[id(cost_table.table)]) for cost_table in cost_tables], unit
