"""From a good assignment of a wide problem to the best one, or to a proof of how far it can be from it.

Variables with few neighbours are eliminated; the rest is put in a line, its costs are reweighted, and
windows of it are searched exactly. A beam finds better assignments on the way. How much work is done
depends on the problem alone, not on the clock, so the same problem has the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .closing import ENTRY_LIMIT, STATE_LIMITS, Closing
from .elimination import Factor
from .frontier import Frontier, Search
from .linear_order import linear_order
from .pairwise import Core, Pairwise, core
from .reweighted import MessagePassing

SWEEPS_AT_ONCE = 25
"""Sweeps between two looks at what they bring."""

LEAST_GAIN = 3e-4
"""Sweeps end when so many raise the bound by less than this part of it."""

SWEEP_ENTRY_LIMIT = 3 << 30
"""Entries of tables that sweeps may look at, in all."""

BEAMS = (1000, 4000)
"""Widths of the beams that look for a better assignment."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many entries of tables sweeps may look at, and how many costs each search for a bound computes."""

    sweep_entries: int = SWEEP_ENTRY_LIMIT
    search_entries: int = ENTRY_LIMIT


WHOLE_EFFORT = Effort()

Report = Callable[[int, int], None]
"""Told the cost of the best assignment and the bound whenever one of them improves."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The best cost known and what is proven; `assignment` is None where none better was found."""

    cost: int
    bound: int
    assignment: tuple[int, ...] | None


def close_gap(
    domains: Sequence[int],
    factors: Sequence[Factor],
    cost: int,
    report: Report,
    effort: Effort = WHOLE_EFFORT,
) -> Gap:
    """Improve on an assignment that costs `cost`, or prove that none is better. Factors are over pairs."""
    return _Search(core(domains, factors), cost, report, effort).run()


class _Search:
    def __init__(self, whole: Core, cost: int, report: Report, effort: Effort) -> None:
        self._whole = whole
        self._cost = cost
        self._bound = 0
        self._assignment: tuple[int, ...] | None = None
        self._report = report
        self._effort = effort
        problem = whole.problem
        self._order = linear_order(problem.neighbours(), problem.domains)

    def run(self) -> Gap:
        messages = self._sweep(self._whole.problem.reordered(self._order))
        tries = [self._begin(messages, backwards) for backwards in (False, True)]
        best, backwards = min(tries, key=lambda found: found[0].promise)
        best.best = float(self._cost - best.problem.bound)
        self._close(best, backwards, STATE_LIMITS[1:])
        complete = None if self._assignment is None else self._whole.complete(self._assignment)
        return Gap(self._cost, self._bound, complete)

    def _sweep(self, problem: Pairwise) -> MessagePassing:
        messages = MessagePassing(problem)
        entries = 2 * sum(table.size for table in problem.tables.values()) * SWEEPS_AT_ONCE
        for _ in range(max(self._effort.sweep_entries // max(entries, 1), 1)):
            before = self._bound
            for _ in range(SWEEPS_AT_ONCE):
                bound = messages.sweep()
            self._prove(bound)
            if bound - before <= LEAST_GAIN * abs(bound):
                break
        return messages

    def _begin(self, messages: MessagePassing, backwards: bool) -> tuple[Closing, bool]:
        """Look for better assignments with beams, then for what few states prove."""
        problem = messages.reweighted(backwards)
        self._prove(problem.bound)
        for width in BEAMS:
            search = Search(0, len(problem.domains), self._cost - problem.bound - 1, beam=width)
            found = Frontier(problem).assignment(search)
            if found is not None:
                self._improve(found, backwards)
        closing = Closing(problem, float(self._cost - problem.bound), lambda _: None)
        self._close(closing, backwards, STATE_LIMITS[:1])
        return closing, backwards

    def _close(self, closing: Closing, backwards: bool, states: Sequence[int]) -> None:
        closing.report = lambda rise: self._prove(closing.problem.bound + int(rise))
        closing.run(states, self._effort.search_entries)
        if closing.assignment is not None:
            self._improve(closing.assignment, backwards)

    def _prove(self, bound: int) -> None:
        if bound > self._bound:
            self._bound = min(bound, self._cost)
            self._report(self._cost, self._bound)

    def _improve(self, assignment: tuple[int, ...], backwards: bool) -> None:
        order = self._order[::-1] if backwards else self._order
        by_variable = [0] * len(order)
        for variable, value in zip(order, assignment, strict=True):
            by_variable[variable] = value
        cost = self._whole.problem.cost(by_variable)
        if cost < self._cost:
            self._cost, self._assignment = cost, tuple(by_variable)
            self._report(self._cost, self._bound)
