"""Find a plan that fits the memory of each worker: put prices on live bytes, and bisect the price.

    minimise      cost(x)                over the plans x of a space
    constraint    peak(x) <= limit       the largest arena of a worker of the lowered plan

    D(p)  =  least over x of  cost(x) + p * lasting(x)   -   p * (workers * limit - passing)

Here `lasting(x)` is the sum of all parts of the tensors that last, and `passing` the size of other tensors at
the fullest instant (`LiveBytes`). A plan within the limit has `lasting(x) + passing <= workers * limit`. So
for every price p >= 0, `D(p)` is a lower bound on the cost of every plan within the limit.

Plans come from the same searches with prices in their tables, on all tensors that are live at that instant.
The higher the price, the less they hold. The least price whose plan fits is found by bisection of a ladder
of prices. The plan that replicates nothing is tried as well. A method that closes the gap proves `D(p)` at
the least price at which `lasting(x)` leaves room; other methods prove it from the first step. Implemented in:
`find_plan_within`, `_Bisection.run` (the ladder), `_Bisection._tight` and `_bound` (the bound),
`LiveBytes.prices`, `LiveBytes.graded_prices` and `factor_graph` (prices in tables).

Guarantees: of the plans that were tried and fit, the cheapest is returned. If none fits, it is the one that
needs the least memory, and `least_peak_bytes` proves what every plan needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from ...dataflow.graph import Graph
from ...support.gc_pause import gc_paused
from ..plans.cost import PICOSECONDS_PER_SECOND, CostUnit
from ..plans.plan import Plan
from ..plans.unproven import unbounded
from ..problem.classes import build_problem
from ..problem.live_bytes import LiveBytes
from ..problem.problem import Chosen, Problem
from ..problem.solution import Solution
from .method import Method, find_method
from .recursive import recursion_bound
from .search import find_plan, plan_of, prepared, searched
from .settings import SearchSettings

RUNGS = 80
"""The number of prices on the ladder."""

RATIO = Fraction(9, 8)
"""The ratio of two neighbouring prices."""

LOWEST = Fraction(1, 64)
"""The lowest price of all bytes that fit, as a part of the cost of the plan without prices."""

STEADY = 1 << 10
"""Prices are multiples of its reciprocal, so that sums of them stay small integers."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """The plan found for a limit of memory."""

    plan: Plan
    """The best plan that fits; if none does, the plan with the least peak."""

    cost: int
    """Its cost by the objective."""

    peak_bytes: int
    """The largest arena of a worker of this plan."""


@gc_paused()
def find_plan_within(
    graph: Graph, workers: int, settings: SearchSettings, limit_bytes: int, peak: Callable[[Plan], int]
) -> Fitting:
    """Find a plan for `workers` workers that fits `limit_bytes` each; `peak` is the memory that a plan needs.

    Raises the errors of `find_plan`. Methods that take no prices make one plan, whether it fits or not.
    """
    start = time.perf_counter()
    plan = find_plan(graph, workers, settings)
    found = Fitting(plan, _cost(plan), peak(plan))
    if not settings.chosen_method().takes_prices:
        return found
    problem, method = prepared(graph, workers, settings)
    live = LiveBytes.of(problem)
    may_fit = live.least_bytes(workers) <= limit_bytes < found.peak_bytes
    if not (may_fit and problem.replicate):
        return found
    found = _Bisection(problem, workers, method, live, limit_bytes, peak, found).run()
    space = replace(settings.space(), memory_bytes=limit_bytes)
    seconds = time.perf_counter() - start
    return replace(found, plan=replace(found.plan, space=space, search_seconds=seconds))


def least_peak_bytes(graph: Graph, workers: int) -> int:
    """Return a lower bound on the largest arena of a worker, for every plan."""
    return LiveBytes.of(build_problem(graph)).least_bytes(workers)


def _cost(plan: Plan) -> int:
    """Return the cost of a plan by the objective that it was found for."""
    timed = plan.transfer_time
    return plan.cost_bytes if timed is None else round(timed.seconds * PICOSECONDS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class _Bisection:
    """A ladder of prices, and the plans at its rungs."""

    problem: Problem
    """The problem without prices."""

    workers: int
    """The number of workers."""

    method: Method
    """The method that makes the plan."""

    live: LiveBytes
    """The tensors that have prices."""

    limit_bytes: int
    """The most that a worker may hold."""

    peak: Callable[[Plan], int]
    """The memory that a plan needs."""

    free: Fitting
    """The plan without prices, which does not fit."""

    def run(self) -> Fitting:
        """Return the best plan that fits, with a bound; the one with the least peak if none does."""
        quick = find_method("refine") if self.method.closes_gap else self.method
        low, high = -1, RUNGS - 1
        tried = [self._graded(high, quick), self._found(self.problem.split_only(), quick)]
        while self._fits(tried[0]) and high - low > 1:
            rung = (low + high) // 2
            tried.append(self._graded(rung, quick))
            low, high = (low, rung) if self._fits(tried[-1]) else (rung, high)
        proving = self._tight(quick)
        if self.method.closes_gap:
            tried.append(self._graded(high, self.method))
            proof = searched(self._even(proving), self.workers, self.method)
            tried.append(self._planned(proof))
            bound = self._bound(proving, proof.lower_bound.value)
        else:
            bound = self._bound(proving, recursion_bound(self._even(proving), self.free.plan.factors))
        fitting = [found for found in tried if self._fits(found)]
        if not fitting:
            return min(self.free, *tried, key=lambda found: found.peak_bytes)
        best = min(fitting, key=lambda found: found.cost)
        if self.problem.objective.unit is not CostUnit.BYTES:
            return best
        bound = min(max(bound, best.plan.lower_bound_bytes), best.cost)
        return replace(best, plan=replace(best.plan, lower_bound_bytes=bound))

    def _fits(self, found: Fitting) -> bool:
        return found.peak_bytes <= self.limit_bytes

    def _price(self, rung: int) -> Fraction:
        """Return the price of a byte at a rung of the ladder."""
        lowest = LOWEST * self.free.cost / max(self.limit_bytes * self.workers, 1)
        return Fraction(max(round(lowest * RATIO**rung * STEADY), 1), STEADY)

    def _graded(self, rung: int, method: Method) -> Fitting:
        """Return the plan that a method finds with the graded prices of a rung."""
        priced = replace(self.problem, prices=self.live.graded_prices(self._price(rung)))
        return self._found(priced, method)

    def _found(self, problem: Problem, method: Method) -> Fitting:
        return self._planned(searched(problem, self.workers, method))

    def _even(self, rung: int) -> Problem:
        """Return the problem with one price on all bytes that last."""
        return replace(self.problem, prices=self.live.prices(self._price(rung)))

    def _tight(self, quick: Method) -> int:
        """Return the lowest rung at which the bytes that last leave room for others: there `D` is highest."""
        low, high = -1, RUNGS - 1
        while high - low > 1:
            rung = (low + high) // 2
            solution = searched(self._even(rung), self.workers, quick)
            lasting = self.live.lasting_of(solution.dimensions, solution.factors)
            low, high = (low, rung) if lasting <= self._room else (rung, high)
        return high

    @property
    def _room(self) -> int:
        """Return the bytes that tensors that last may take on all workers."""
        return self.limit_bytes * self.workers - self.live.passing_bytes

    def _bound(self, rung: int, least: int) -> int:
        """Return the bound on the cost of plans that fit, given the least cost with a price on what lasts."""
        return least - math.ceil(self._price(rung) * self._room)

    def _planned(self, solution: Solution) -> Fitting:
        """Return a solution of the problem with prices as a plan of the one without."""
        problem, free = self.problem, self.free.plan
        cost = problem.objective.total(
            Chosen(problem, solution.factors, solution.strategies, solution.dimensions)
        )
        unpriced = replace(
            solution,
            cost=problem.cost(cost),
            lower_bound=problem.cost(
                min(free.lower_bound_bytes, cost) if problem.objective.unit is CostUnit.BYTES else 0
            ),
            unproven=unbounded(solution.unproven),
        )
        plan = plan_of(problem, unpriced, self.workers, self.method)
        return Fitting(plan, cost, self.peak(plan))
