"""Moves that know the graph.

    redraw     a decision takes any configuration of its set, half of the time one with each task on a worker
               of its own
    copy       it takes what goes with a neighbour's configuration
    spread     a decision takes a configuration, and those around it what goes with it, neighbour by neighbour
    shift      the decisions of a stretch of the graph, or one, move to other workers, split as before
    unite      a factor of one degree goes to another dimension, or away
    hold       partial results are held by others
    solve      a window of decisions takes what is best given those around it (`windows`)

Every second move starts at a decision that has weight, those with more of it more often. The weight is the
time on the chain of jobs that decides the time of the iteration, or what else a search gives. Decisions that
are tied, such as those of one cell at different time steps, move together in every second move.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from random import Random

from ..flexflow.configurations import Configuration, Drawable, Holders, divisors, run_of
from ..flexflow.soap import Kind, Soap
from .neighbours import Neighbours
from .open_decisions import OpenDecisions
from .windows import WINDOW, DecisionWindows

Changes = dict[int, Configuration]

MOST_AROUND = 64
"""The most decisions to which a configuration spreads."""

SOLVED = 4
"""How much more often a window is solved than a decision redrawn: windows find most of the faster plans."""

LOOKED_UP = 16
"""The moves after which weights are looked up again."""


class Moves:
    """The moves among the strategies of a space.

    `weights` gives the weight of each operation. It is called when no proposal is open.
    """

    def __init__(
        self,
        soap: Soap,
        drawn: Sequence[Drawable],
        neighbours: Neighbours,
        windows: DecisionWindows,
        open_decisions: OpenDecisions,
        weights: Callable[[], Sequence[int]],
    ) -> None:
        self._soap = soap
        self._drawn = drawn
        self._neighbours = neighbours
        self._windows = windows
        self._weights = weights
        self._count = 0
        """The moves so far."""
        self._sums: list[int] = []
        """For each open decision, the weight of it and all before it."""
        self._open = open_decisions
        self._shifts = [each for each in divisors(soap.workers) if each < soap.workers]
        self._kinds: tuple[Callable[[Random, Sequence[Configuration | None]], Changes], ...] = (
            self._redraw,
            self._copy,
            self._spread,
            self._spread,
            self._shift,
            self._unite,
            self._hold,
            *(self._solve,) * SOLVED,
        )

    def __call__(self, draw: Random, state: Sequence[Configuration | None]) -> Mapping[int, Configuration]:
        """Draw a move."""
        if not self._open.numbers:
            return {}
        if self._count % LOOKED_UP == 0:
            self._look_up()
        self._count += 1
        changes = self._kinds[draw.randrange(len(self._kinds))](draw, state)
        if self._open.tied and draw.random() < 0.5:
            for number in list(changes):
                for member in self._open.together(number):
                    changes.setdefault(member, changes[number])
        return self._open.changed(changes, state)

    def _look_up(self) -> None:
        found = self._open.weights(self._weights())
        self._sums = list(accumulate(found[number] for number in self._open.numbers))

    def _any(self, draw: Random) -> int:
        numbers = self._open.numbers
        if self._sums[-1] and draw.random() < 0.5:
            return numbers[bisect_right(self._sums, draw.randrange(self._sums[-1]))]
        return numbers[draw.randrange(len(numbers))]

    def _redraw(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        return {number: self._drawn_for(number, draw)}

    def _drawn_for(self, number: int, draw: Random) -> Configuration:
        drawn = self._drawn[number]
        return drawn.aligned(draw) if draw.random() < 0.5 else drawn.draw(draw)

    def _copy(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        others = list(self._neighbours.of(number))
        if not others:
            return {}
        other = others[draw.randrange(len(others))]
        configuration = state[other]
        found = None if configuration is None else self._neighbours.carried(other, configuration, number)
        return {} if found is None else {number: found}

    def _spread(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        kept = state[number]
        first = self._drawn_for(number, draw) if kept is None or draw.random() < 0.5 else kept
        most = 1 << draw.randint(1, MOST_AROUND.bit_length() - 1)
        changes = {number: first}
        for source in self._around(number, most):
            for target in self._neighbours.of(source):
                if (
                    target not in changes
                    and target in self._open
                    and len(changes) < most
                    and source in changes
                ):
                    found = self._neighbours.carried(source, changes[source], target)
                    if found is not None:
                        changes[target] = found
        return changes

    def _around(self, number: int, most: int) -> list[int]:
        """Return decisions near one, the nearest first."""
        found = {number: None}
        left = [number]
        for source in left:
            if len(found) >= most:
                break
            for target in self._neighbours.of(source):
                if target not in found:
                    found[target] = None
                    left.append(target)
        return left

    def _shift(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        count = 1 << draw.randint(0, MOST_AROUND.bit_length() - 1)
        around = self._around(number, count)[:count] if draw.random() < 0.5 else range(number, number + count)
        step = self._shifts[draw.randrange(len(self._shifts))] if self._shifts else 0
        workers = self._soap.workers
        return {
            each: replace(old, workers=tuple((worker + step) % workers for worker in old.workers))
            for each in around
            if each < len(state) and (old := state[each]) is not None
        }

    def _unite(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        old, dimensions = state[number], self._soap.decisions[number].dimensions
        if old is None:
            return {}
        degrees = list(old.degrees)
        places = [place for place, degree in enumerate(degrees) if degree > 1]
        if places and draw.random() < 0.7:
            place = places[draw.randrange(len(places))]
            factors = divisors(degrees[place])[1:]
            degrees[place] //= factors[draw.randrange(len(factors))]
        left = divisors(self._soap.workers // prod(degrees))
        place = draw.randrange(len(degrees))
        fitting = [each for each in left if degrees[place] * each <= dimensions[place].extent]
        if fitting:
            degrees[place] *= fitting[draw.randrange(len(fitting))]
        tasks = prod(degrees)
        split = [each for each, degree in zip(dimensions, degrees, strict=True) if degree > 1]
        used = sorted(set(old.workers))
        over = max(each for each in divisors(tasks) if each <= len(used) or each == 1)
        if any(each.kind is Kind.REPLICA for each in split) or draw.random() < 0.5:
            over = tasks
        chosen = run_of(0, tasks, over, self._soap.workers)
        workers = (
            [used[each] for each in chosen]
            if over <= len(used)
            else [(used[0] + each) % self._soap.workers for each in chosen]
        )
        holders = old.holders if any(each.reduces for each in split) else Holders.PARTS
        return {number: Configuration(tuple(degrees), tuple(workers), holders)}

    def _hold(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        number = self._any(draw)
        old, dimensions = state[number], self._soap.decisions[number].dimensions
        if old is None:
            return {}
        if not any(d.reduces and degree > 1 for d, degree in zip(dimensions, old.degrees, strict=True)):
            return {}
        return {number: replace(old, holders=tuple(Holders)[draw.randrange(len(Holders))])}

    def _solve(self, draw: Random, state: Sequence[Configuration | None]) -> Changes:
        near = self._around(self._any(draw), WINDOW * 2)
        return self._windows.solved(draw, state, [number for number in near if number in self._open])
