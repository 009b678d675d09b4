"""Search among the choices of plans that were found, at prices on live bytes.

    variables    for every class, one of the choices that some plan makes for it
    minimise     cost(x) + sum over operations o of p[o] * live[o](x)

There are few such choices, so the least sum is found in a fraction of the time of a search, and many prices
can be tried. Layers repeat, so at one price for all tensors they would change at once. Prices rise with the
place in the graph: the higher they are, the more of its layers have changed, and some plan comes near a
limit. Implemented in: `Among.solved`, `Among.within` (prices, doubled and then bisected),
`Among.at_lowest_price` (fewer prices, and no plan for most of them), `LiveBytes.rising_prices`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from ..plans.cost import Cost
from ..plans.plan import Plan
from ..problem.factor_graph import factor_graph
from ..problem.live_bytes import LiveBytes
from ..problem.plan_choices import choices_made, choices_of
from ..problem.problem import Problem
from ..problem.solution import Solution, assigned
from ..solvers.solve import least_cost

STEADY = 1 << 20
"""Prices are multiples of its reciprocal."""

DOUBLINGS = 16
"""The most times that a price is doubled until the plan is light enough."""

HALVINGS = 12
"""The number of times that the range of prices is halved."""

CORRECTIONS = 3
"""The most plans that are made at a lowest price."""


class Among:
    """The choices of some plans."""

    def __init__(self, live: LiveBytes, workers: int, plans: Iterable[Plan]) -> None:
        self._live = live
        self._workers = workers
        self._factors = factors = live.problem.objective.factors(workers)
        fitting = [choices_of(live.problem, plan) for plan in plans if plan.factors == factors]
        self._choices = choices_made(live.problem, factors, fitting)

    def solved(self, problem: Problem) -> Solution:
        """Return the best plan for a problem with prices."""
        domains, tables = factor_graph(problem, *self._choices)
        found = least_cost(domains, tables)
        cost = Cost(found.cost, problem.objective.unit)
        return assigned(self._factors, *self._choices, found.assignment, cost=cost)

    def within(self, lowest: Fraction, room: int, fits: Callable[[Solution], bool]) -> None:
        """Call `fits` with plans that come near a limit; it tells whether one is within.

        A plan that holds more than `room` bytes on all workers is not. `lowest` is a low price. Operations at
        which too much is live have the price.
        """
        fullest: set[int] = set()

        def light(price: Fraction) -> bool:
            solution = self._at(price, fullest)
            operation, live = self._live.fullest_of(solution.strategies, solution.dimensions, self._factors)
            if live > room:
                fullest.add(operation)
            return live <= room and fits(solution)

        high = lowest
        for _ in range(DOUBLINGS):
            if light(high):
                break
            high *= 2
        else:
            return
        low = high / 2
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if light(middle) else (middle, high)

    def at_lowest_price(
        self, prices: Sequence[Fraction], room: int, excess: Fraction, arenas: Callable[[Solution], int]
    ) -> None:
        """Call `arenas` with the plan at the lowest of ascending prices whose arenas are within `room`.

        Arenas take long to plan, so those of other plans are taken to be `excess` times what is live. After
        each plan, that is corrected by what its arenas take, and another one is found if that leads to it.
        """

        @cache
        def found(price: Fraction) -> tuple[Solution, int]:
            solution = self._at(price, ())
            _, live = self._live.fullest_of(solution.strategies, solution.dimensions, self._factors)
            return solution, live

        tried = {len(prices)}
        for _ in range(CORRECTIONS):
            most = int(room / excess)
            place = bisect_left(range(len(prices)), True, key=lambda each: found(prices[each])[1] <= most)
            if place in tried:
                return
            tried.add(place)
            solution, live = found(prices[place])
            excess = Fraction(arenas(solution), live)

    def _at(self, price: Fraction, operations: Iterable[int]) -> Solution:
        """Return the best plan at a price, also on what is live while some operations compute."""
        live, price = self._live, Fraction(max(round(price * STEADY), 1), STEADY)
        hot = dict.fromkeys(sorted(operations), price)
        priced = replace(
            live.problem,
            prices=live.rising_prices(price),
            buffer_prices=live.buffer_prices(hot, self._workers) if hot else None,
            bounded=False,
        )
        return self.solved(priced)
