"""Chains with a budget: run until it is spent, or the best has not improved for half of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ..budget import Budget
from .metropolis import metropolis
from .walk import State, StrategyWalk


@dataclass(frozen=True, slots=True)
class Visited:
    """A state that a chain visited, better than all before."""

    cost: int
    """Its cost: the nanoseconds of an iteration, if the walk minimises those."""

    state: State
    """The state."""


class Chains:
    """Chains that run one after the other, and share the seconds that are left evenly."""

    def __init__(self, count: int, budget: Budget) -> None:
        self._count = count
        self._budget = budget
        self._start = time.perf_counter()
        self._proposals = 0
        self._chain = 0

    def run(
        self,
        walk: StrategyWalk,
        draw: Random,
        warmth: Callable[[float], float] = lambda spent: 1.0,
        nanoseconds: int | None = None,
    ) -> list[Visited]:
        """Run a chain, and return its first state and each that was better than all before.

        `warmth` divides beta; it is given the part of the chain's budget that is spent. `nanoseconds` are
        those of the best state if the walk minimises anything else.
        """
        begin = now = better_then = time.perf_counter()
        self._chain += 1
        limit, most = self._seconds(), self._budget.sampling.most
        found, better_at, number = [Visited(walk.cost, tuple(walk.strategy))], 0, 0
        beta = self._budget.sampling.beta / max(walk.cost, 1)
        self._show(walk.cost if nanoseconds is None else nanoseconds)

        def part() -> float:
            of_time = 0.0 if limit is None else (now - begin) / limit
            return max(of_time, 0.0 if most is None else number / most)

        def idle() -> float:
            of_time = 0.0 if limit is None else (now - better_then) / limit
            return max(of_time, 0.0 if most is None else (number - better_at) / most)

        for accepted in metropolis(walk, draw, lambda _: beta / warmth(part())):
            number += 1
            now = begin if limit is None else time.perf_counter()
            if accepted and walk.cost < found[-1].cost:
                found.append(Visited(walk.cost, tuple(walk.strategy)))
                better_at, better_then = number, now
            self._proposals += 1
            self._show(found[-1].cost if nanoseconds is None else nanoseconds)
            if part() >= 1 or 2 * idle() >= 1:
                break
        return found

    def _seconds(self) -> float | None:
        """Return an even share of the seconds that are left; None without a limit."""
        left = self._budget.left
        return None if left is None else max(left, 1e-9) / max(self._count - self._chain + 1, 1)

    def _show(self, best: int) -> None:
        per_second = self._proposals / (time.perf_counter() - self._start)
        self._budget.show(best, self._chain, self._count, self._proposals, per_second)
