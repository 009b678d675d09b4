"""Chains with a budget: run until it is spent, or the best has not improved for half of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from ...plans.sampling import Sampling
from .metropolis import metropolis
from .strategy import Strategy
from .walk import StrategyWalk

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a random search has come."""

    seconds: float
    """The simulated time of an iteration of the best plan so far."""

    chain: int
    """The number of the chain that runs, from 1 on."""

    chains: int
    """The number of chains."""

    proposals: int
    """The proposals of all chains so far."""

    per_second: float
    """The proposals per second."""


Watch = Callable[[SearchProgress], None]
"""Called with the progress, at most ten times a second, and at the end."""

_OFTEN = 0.1


@dataclass(frozen=True, slots=True)
class Found:
    """The best strategy that chains visited."""

    nanoseconds: int
    """The time of an iteration."""

    strategy: Strategy
    """The configuration of each decision."""


class Chains:
    """Chains that run one after the other, within one budget of seconds."""

    def __init__(self, count: int, sampling: Sampling, watch: Watch | None) -> None:
        self._count = count
        self._sampling = sampling
        self._watch = watch
        self._start = self._shown = time.perf_counter()
        self._proposals = 0
        self._chain = 0
        self._best = 0

    def run(self, walk: StrategyWalk, draw: Random, beta: Callable[[int], float] | None = None) -> Found:
        """Run a chain, and return the best strategy that it visits.

        `beta` gives the inverse temperature of each proposal, if it is not the same for all.
        """
        constant = self._sampling.beta / max(walk.cost, 1)
        begin = time.perf_counter()
        self._chain += 1
        seconds = None
        if self._sampling.seconds is not None:
            left = self._start + self._sampling.seconds - begin
            seconds = left / (self._count - self._chain + 1)
        best, found, found_at, found_then = walk.cost, tuple(walk.strategy), 0, begin
        most = self._sampling.most
        for number, accepted in enumerate(metropolis(walk, draw, beta or (lambda _: constant)), 1):
            if accepted and walk.cost < best:
                best, found, found_at = walk.cost, tuple(walk.strategy), number
                found_then = time.perf_counter() if seconds is not None else begin
            self._proposals += 1
            self._show(best)
            if most is not None and (number >= most or 2 * (number - found_at) >= most):
                break
            if seconds is not None:
                now = time.perf_counter()
                if now - begin >= seconds or 2 * (now - found_then) >= seconds:
                    break
        return Found(best, found)

    def _show(self, best: int) -> None:
        self._best = min(self._best or best, best)
        now = time.perf_counter() if self._watch is not None else 0.0
        if self._watch is not None and now - self._shown >= _OFTEN:
            self._shown = now
            per_second = self._proposals / (now - self._start)
            self._watch(
                SearchProgress(
                    self._best / _NANOSECONDS, self._chain, self._count, self._proposals, per_second
                )
            )


def least(found: Iterable[Found]) -> Found:
    """Return the one with the least time, the first of equal ones."""
    return min(found, key=lambda each: each.nanoseconds)
