"""Prove what plans within a limit of memory must cost, by prices on the bytes that operations hold.

    D(p)  =  least over x of  cost(x) + sum over o of  p[o] * (live[o](x) - room)

A plan within the limit has `live[o](x) <= room` for every operation o, see `LiveBytes`. So for all prices
p[o] >= 0, `D(p)` is a lower bound on its cost. It is concave and linear in parts. Every plan x that was
found gives a plane that lies above it, and the planes together a model of it. Steps change the price of
one operation at a time, to where the model is highest, until the plan found there lies on the model
(Kelley). Then the operation that is the fullest in the mean of the plans that meet there gets a price,
too. A quick search finds the plans; only at the best prices is the least proven. Implemented in: `ascend`
(the steps), `_highest` (the model along a line), `LivePrices.priced` and `LivePrices.bound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..problem.live_bytes import LiveBytes
from ..problem.plan_choices import Choices
from ..problem.problem import Problem

STEPS = 12
"""The number of steps."""

TOLERANCE = 1e-3
"""A plan lies on the model if it is below by at most this part of the target."""

STEADY = 1 << 10
"""Prices are multiples of its reciprocal, so that sums of them stay small integers."""


@dataclass(frozen=True, slots=True)
class LivePrices:
    """The price of a byte that is live while an operation computes."""

    live: LiveBytes
    """The bytes that are live."""

    workers: int
    """The number of workers."""

    room: int
    """The bytes that all workers together may hold."""

    of: Mapping[int, Fraction]
    """The price, by operation; others are free."""

    def priced(self) -> Problem:
        """Return the problem with these prices."""
        total = sum(self.of.values(), Fraction(0))
        return replace(
            self.live.problem,
            prices=self.live.prices(total),
            buffer_prices=self.live.buffer_prices(self.of, self.workers),
        )

    def times(self, factor: Fraction) -> LivePrices:
        """Return the same prices, higher by a factor."""
        return replace(
            self, of={o: round(price * factor * STEADY) / Fraction(STEADY) for o, price in self.of.items()}
        )

    def bound(self, least: int) -> int:
        """Return the bound on plans within the limit, given the least cost with these prices."""
        total = sum(self.of.values(), Fraction(0))
        return least - math.ceil(total * self.room - self.live.unpriced(self.of))


@dataclass(frozen=True, slots=True)
class _Plane:
    """A plan as a plane above `D`."""

    cost: int
    """The plan's cost without prices."""

    over: Sequence[int]
    """For each operation, the bytes live on all workers beyond the room."""

    def at(self, prices: Mapping[int, Fraction]) -> float:
        """Return the height of the plane."""
        return self.cost + sum(float(price) * self.over[operation] for operation, price in prices.items())


def ascend(
    live: LiveBytes,
    workers: int,
    room: int,
    start: tuple[Choices, int],
    target: int,
    search: Callable[[Problem], tuple[Choices, int]],
) -> LivePrices:
    """Take steps from the best plan without prices, `start`, until the bound reaches the cost `target`.

    `search` finds a plan for prices, and tells its cost without them. Return the prices with the highest
    bound, as far as `search` knows; none if the plan without prices does not exceed the room.
    """
    factors = live.problem.objective.factors(workers)

    def plane(found: tuple[Choices, int]) -> _Plane:
        (strategies, dimensions), cost = found
        totals = live.totals(strategies, dimensions, factors)
        return _Plane(cost, [total - room for total in totals])

    planes = [plane(start)]
    operation = _fullest(planes[0].over)
    prices: dict[int, Fraction] = {}
    best: tuple[float, LivePrices] = (-math.inf, LivePrices(live, workers, room, prices))
    if planes[0].over[operation] <= 0:
        return best[1]
    for _ in range(STEPS):
        others = {o: price for o, price in prices.items() if o != operation}
        price, model, mean = _highest([(each.at(others), each.over) for each in planes], operation, target)
        prices = {**others, operation: Fraction(round(price * STEADY), STEADY)}
        asked = LivePrices(live, workers, room, prices)
        planes.append(plane(search(asked.priced())))
        dual = planes[-1].at(prices)
        if dual > best[0]:
            best = dual, asked
        if dual < model - TOLERANCE * target:
            continue
        following = _fullest(mean)
        if dual >= target or following == operation or mean[following] <= 0:
            break
        operation = following
    return best[1]


def _highest(
    lines: Sequence[tuple[float, Sequence[int]]], operation: int, target: int
) -> tuple[float, float, Sequence[float]]:
    """Return the price at which the least of the lines, or the target, is highest, and its height there.

    A line is its height at the price 0, and what plans hold beyond the room; its slope is that of the
    operation. The third is what is held beyond the room, in the mean of the two lines that meet there.
    """
    slopes = [(height, over[operation], over) for height, over in lines]
    rising = [each for each in slopes if each[1] > 0]
    flat = [(float(target), 0, [0] * len(lines[0][1]))]
    found: tuple[float, float, Sequence[float]] = (0.0, min(height for height, _ in lines), lines[0][1])
    for up_height, up, up_over in rising:
        for down_height, down, down_over in [*(each for each in slopes if each[1] <= 0), *flat]:
            price = (down_height - up_height) / (up - down)
            if price <= 0:
                continue
            height = min(target, *(each[0] + price * each[1] for each in slopes))
            if height > found[1]:
                share = -down / (up - down)
                mean = [share * a + (1 - share) * b for a, b in zip(up_over, down_over, strict=True)]
                found = price, height, mean
    return found


def _fullest(over: Sequence[float]) -> int:
    return max(range(len(over)), key=over.__getitem__)
