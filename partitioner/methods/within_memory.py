"""Find a plan that fits the memory of each worker: put prices on live bytes, and bisect the price.

    minimise      cost(x)                over the plans x of a space
    constraint    peak(x) <= limit       the most that a worker of the lowered plan holds

Plans come from the same searches with prices in their tables: on all tensors that are live at the fullest
instant, in grades, and on the buffers of operations that exceed the limit if nothing else fits. The
higher the price, the less plans hold. The least price of a ladder whose plan fits is found by bisection.
The plan that replicates nothing is tried as well, and so are those that the bound leads to
(`lagrangian`).

The workspace of kernels counts. It is slow to find, so it is found for plans that would be returned, and
others are taken to need as much as the last one. Implemented in: `find_plan_within`, `memory_front`,
`_Ladder._bisect` (the bisection), `_Ladder.settled` (the workspace), `_Ladder._bounded` (the bound),
`LiveBytes.graded_prices` and `buffer_prices` (prices).

Guarantees: of the plans that were tried and fit, the cheapest is returned. If none fits, it is the one that
needs the least memory, and `least_peak_bytes` proves what every plan in steps needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, cast

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ...machines.quantities import quantity
from ...support.gc_pause import gc_paused
from ..layouts.step_split import Dimensions, Strategies
from ..plans.cost import PICOSECONDS_PER_SECOND, CostUnit
from ..plans.plan import Plan
from ..plans.unproven import unbounded
from ..problem.classes import build_problem
from ..problem.live_bytes import LiveBytes
from ..problem.problem import Chosen, Problem
from ..problem.solution import Solution
from .by_cost import PlansByCost
from .keeping_within import within
from .lagrangian import Choices, LivePrices, ascend
from .method import Method, find_method
from .search import find_plan, plan_of, prepared, searched
from .settings import SearchSettings

RUNGS = 80
"""The number of prices on the ladder."""

RATIO = Fraction(9, 8)
"""The ratio of two neighbouring prices."""

LOWEST = Fraction(1, 64)
"""The lowest price of all bytes that the free plan holds, as a part of its cost."""

STEADY = 1 << 10
"""Prices are multiples of its reciprocal, so that sums of them stay small integers."""

MORE_BY_DEFAULT = Fraction(15, 100)
"""Without a limit, a plan may take this much more memory than the refined one that replicates nothing."""

REPAIRS = 3
"""How often operations that exceed the limit at the highest price get prices on their buffers."""

NEARLY_FULLEST = Fraction(95, 100)
"""Operations at which this part of the most is live get prices as well."""

COARSE = 8
"""Without a limit, bisection ends at this number of rungs."""

STEEPER = 24
"""The number of prices above those of the bound, at which plans are looked for that fit."""

POINTS = 5
"""The number of plans of a front."""


Limit = int | Literal["unlimited"] | None
"""The bytes that each worker may hold. None limits arenas to `MORE_BY_DEFAULT` above the refined plan that
replicates nothing."""


def parse_limit(value: int | str | None, place: str, machine: Machine | None) -> Limit:
    """Read a limit: `unlimited`, or bytes as a number or as text; without a value it is the machine's memory.

    Raises MachineError if it is none of these; `place` names it.
    """
    if value == "unlimited":
        return "unlimited"
    if value is not None:
        return int(quantity(value, place))
    return None if machine is None else machine.memory_bytes


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory that a plan needs of its fullest worker."""

    arena: Callable[[Plan], int]
    """Returns the bytes of its arena."""

    workspace: Callable[[Plan], int] | None = None
    """Returns the bytes of the peak besides the arena, which kernels take; None if they do not count."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """A plan found for a limit of memory."""

    plan: Plan
    """The best plan that fits; if none does, the plan with the least peak."""

    cost: int
    """Its cost by the objective."""

    arena_bytes: int
    """The largest arena of a worker."""

    workspace_bytes: int | None = None
    """The memory of the fullest worker besides its arena; None if it was not counted."""

    larger: Fitting | None = None
    """Of the plans found that cost less, the one that needs the least memory; None if there is none."""

    without_copies: Fitting | None = None
    """If the plan keeps copies beyond its space, the best plan of the space, whose bound is for the limit."""

    least_bytes: int = 0
    """If the plan does not fit, a lower bound on the memory that the plans of its space need."""

    @property
    def peak_bytes(self) -> int:
        """Return the most that a worker holds, as far as it was counted."""
        return self.arena_bytes + (self.workspace_bytes or 0)


@gc_paused()
def find_plan_within(
    graph: Graph, workers: int, settings: SearchSettings, limit: Limit, needs: Needs
) -> Fitting:
    """Find a plan for `workers` workers that fits the limit of each.

    Raises the errors of `find_plan`. Methods that take no prices make one plan, whether it fits or not.
    """
    start = time.perf_counter()
    plan = find_plan(graph, workers, settings)
    takes_prices = settings.chosen_method().takes_prices
    if limit == "unlimited" or (limit is None and not (plan.space.replicate and takes_prices)):
        return Fitting(plan, _cost(plan), needs.arena(plan))
    if limit is None:
        needs = Needs(needs.arena)
    ladder = _Ladder.of(graph, workers, settings, needs, plan)
    if limit is None:
        ladder.stride = COARSE
    ladder.limit_bytes = ladder.default_limit() if limit is None else limit
    settled = ladder.settled(ladder.free)
    if settled is not None:
        return settled
    least = least_peak_bytes(graph, workers)
    if not takes_prices or least > ladder.limit_bytes:
        return replace(ladder.measured(ladder.free), least_bytes=least)
    found = ladder.found(least)
    space = plan.space
    if ladder.fits(found):
        space = replace(space, memory_bytes=ladder.limit_bytes)
    plan = replace(found.plan, space=space, search_seconds=time.perf_counter() - start)
    return replace(found, plan=plan, larger=ladder.larger(found) if ladder.fits(found) else None)


@gc_paused()
def memory_front(
    graph: Graph, workers: int, settings: SearchSettings, arena: Callable[[Plan], int]
) -> tuple[Fitting, ...]:
    """Return up to `POINTS` plans, from the least memory that prices lead to up to the best plan.

    Their limits are spread evenly over the memory between the two. A plan is left out if another one takes no
    more memory and costs no more. The bounds of the plans hold for all plans, not for those within a limit.
    Only arenas count.
    """
    plan = find_plan(graph, workers, settings)
    if not settings.chosen_method().takes_prices:
        return (Fitting(plan, _cost(plan), arena(plan)),)
    return _Ladder.of(graph, workers, settings, Needs(arena), plan).front()


def least_peak_bytes(graph: Graph, workers: int) -> int:
    """Return a lower bound on the largest arena of a worker, for every plan in steps."""
    return LiveBytes.of(build_problem(graph)).least_bytes(workers)


def _cost(plan: Plan) -> int:
    """Return the cost of a plan by the objective that it was found for."""
    timed = plan.transfer_time
    return plan.cost_bytes if timed is None else round(timed.seconds * PICOSECONDS_PER_SECOND)


class _Ladder:
    """A ladder of prices, and the plans at its rungs, each searched once."""

    def __init__(
        self, problem: Problem, workers: int, method: Method, live: LiveBytes, needs: Needs, free: Plan
    ) -> None:
        self.live = live
        self.limit_bytes = 0
        self.stride = 1
        self._problem = problem
        self._workers = workers
        self._method = method
        self._quick = find_method("refine") if method.closes_gap else method
        self._needs = needs
        self._allowance = 0
        cost = problem.objective.total(self._chosen(free)) if method.takes_prices else _cost(free)
        self._found: dict[object, Fitting] = {"free": Fitting(free, cost, needs.arena(free))}

    @classmethod
    def of(cls, graph: Graph, workers: int, settings: SearchSettings, needs: Needs, free: Plan) -> _Ladder:
        """Return the ladder of a search, given its plan without prices."""
        problem, method = prepared(graph, workers, settings)
        return cls(problem, workers, method, LiveBytes.of(problem), needs, free)

    @property
    def free(self) -> Fitting:
        """Return the plan without prices."""
        return self._found["free"]

    def default_limit(self) -> int:
        """Return the limit of arenas if none is given; any at which the free plan is known to fit will do."""
        at_least = int(self.live.least_bytes(self._workers) * (1 + MORE_BY_DEFAULT))
        if self.free.arena_bytes <= at_least:
            return at_least
        return int(self._split(find_method("refine")).arena_bytes * (1 + MORE_BY_DEFAULT))

    def fits(self, found: Fitting) -> bool:
        """Tell whether a plan fits; a workspace that was not counted is taken to be as large as others."""
        workspace = self._allowance if found.workspace_bytes is None else found.workspace_bytes
        return found.arena_bytes + workspace <= self.limit_bytes

    def measured(self, found: Fitting) -> Fitting:
        """Return a plan with its workspace, unless its arena alone does not fit."""
        workspace = self._needs.workspace
        if workspace is None or found.workspace_bytes is not None or found.arena_bytes > self.limit_bytes:
            return found
        measured = replace(found, workspace_bytes=workspace(found.plan))
        self._found |= {key: measured for key, each in self._found.items() if each is found}
        return measured

    def settled(self, found: Fitting) -> Fitting | None:
        """Return a plan with its workspace if it fits. Other plans are then taken to need as much."""
        if not self.fits(found):
            return None
        measured = self.measured(found)
        self._allowance = max(self._allowance, measured.workspace_bytes or 0)
        return measured if self.fits(measured) else None

    def found(self, least: int) -> Fitting:
        """Return the cheapest plan found that fits, with further copies if these save bytes.

        If none fits, it is the lightest one. Every plan needs at least `least` bytes.
        """
        best = self._proven(least)
        if not best.plan.space.keep:
            return best
        lightest = min(self._found.values(), key=_by_memory)
        bases = {id(base): base for base in (best, self.free, lightest)}
        kept = [each for base in bases.values() for each in self._with_copies(base)]
        found = min((best, *kept), key=lambda each: (not self.fits(each), *_by_cost(each)))
        return found if found is best else replace(found, without_copies=best)

    def _with_copies(self, base: Fitting) -> Iterator[Fitting]:
        """Yield the best plan with a plan's strategies that fits with its workspace, if one is found."""
        for _ in range(REPAIRS):
            room = self.limit_bytes - self._allowance
            made = within(self._problem.graph, base.plan, room, self._needs.arena)
            if made.plan is base.plan or made.peak_bytes > room:
                return
            cost = base.cost - base.plan.cost_bytes + made.plan.cost_bytes
            settled = self.settled(Fitting(made.plan, cost, made.peak_bytes))
            if settled is not None:
                yield settled
                return

    def _proven(self, least: int) -> Fitting:
        """Return the cheapest plan of the space that was found and fits, with a bound; else the lightest."""
        best = self._cheapest()
        if not (self._method.closes_gap or best is None):
            return best
        prices, bound = self._bounded(best)
        best = self._cheapest()
        plans = PlansByCost(self.live, self._workers)
        if best is None:
            least = max(least, self._lightest(plans))
            best = self._best()
        if self._method.closes_gap and (best is not None or least <= self.limit_bytes):
            cost = None if best is None else best.cost
            bound = max(bound, plans.cheapest(prices, self.limit_bytes, cost, self._needed))
            best = self._best() or best
        if best is None:
            lightest = self.measured(min(self._found.values(), key=_by_memory))
            return replace(lightest, least_bytes=least)
        if not self._method.closes_gap or self._problem.objective.unit is not CostUnit.BYTES:
            return best
        bound = min(max(bound - self._repeated(best.plan), best.plan.lower_bound_bytes), best.plan.cost_bytes)
        return replace(best, plan=replace(best.plan, lower_bound_bytes=bound))

    def _lightest(self, plans: PlansByCost) -> int:
        """Look for a plan that fits, the lightest first; return a bound on what all need."""
        lightest = min(self._found.values(), key=_by_memory)
        strategies, dimensions = self._choices(lightest.plan)
        totals = self.live.totals(strategies, dimensions, lightest.plan.factors)
        least = min(self.measured(found).peak_bytes for found in self._found.values())
        return plans.lightest(totals.index(max(totals)), self.limit_bytes, least, self._needed)

    def _needed(self, solution: Solution) -> int:
        """Return the memory that a plan needs. If its arena does not fit, the workspace is not counted."""
        return self.measured(self._planned(solution, ("looked", len(self._found)))).peak_bytes

    def _best(self) -> Fitting | None:
        """Return the cheapest plan found so far that fits."""
        return min(filter(self.fits, self._found.values()), key=_by_cost, default=None)

    def _repeated(self, plan: Plan) -> int:
        """Return the price of what a plan computes more than once, which bounds include."""
        return self._chosen(plan).repeated_bytes

    def _chosen(self, plan: Plan) -> Chosen:
        strategies, dimensions = self._choices(plan)
        return Chosen(self._problem, plan.factors, tuple(strategies), tuple(dimensions))

    def larger(self, than: Fitting) -> Fitting | None:
        """Return the plan with the least memory of those found that cost less."""
        cheaper = [found for found in self._found.values() if found.cost < than.cost and not self.fits(found)]
        found = min(cheaper, key=_by_memory, default=None)
        return None if found is None else replace(found, workspace_bytes=than.workspace_bytes)

    def front(self) -> tuple[Fitting, ...]:
        """Return the cheapest plans found for limits that are spread evenly."""
        self._bisect()
        least = min(found.arena_bytes for found in self._found.values())
        more = self.free.arena_bytes - least
        limits = [least + more * part // (POINTS - 1) for part in range(POINTS)]
        for self.limit_bytes in limits[1:-1]:
            self._bisect()
        points: list[Fitting] = []
        for self.limit_bytes in limits:
            best = min(filter(self.fits, self._found.values()), key=_by_cost)
            if not points or best.cost < points[-1].cost:
                points.append(best)
        return tuple(points)

    def _cheapest(self) -> Fitting | None:
        """Return the cheapest plan that bisection finds and that fits with its workspace, or None."""
        while True:
            self._bisect()
            best = self._best()
            if best is None:
                break
            settled = self.settled(best)
            if settled is not None:
                return settled
        lightest = [found for found in self._found.values() if found.workspace_bytes is None]
        for found in sorted(lightest, key=lambda found: found.arena_bytes)[:REPAIRS]:
            measured = self.measured(found)
            if self.fits(measured):
                return measured
        return None

    def _bisect(self) -> None:
        """Find the lowest rung whose plan fits; if that of the highest does not, operations get prices."""
        self._split(self._quick)
        high, hot = RUNGS - 1, frozenset[int]()
        for _ in range(REPAIRS):
            top = self._rung(high, hot)
            if self.fits(top):
                break
            hot |= self._fullest(top)
        else:
            return
        self._lowest_fitting(high, lambda rung: self._rung(rung, hot))

    def _lowest_fitting(self, high: int, plan: Callable[[int], Fitting]) -> int:
        """Return the lowest rung below `high` whose plan fits, or `high`."""
        low = -1
        while high - low > self.stride:
            rung = (low + high) // 2
            low, high = (low, rung) if self.fits(plan(rung)) else (rung, high)
        return high

    def _bounded(self, best: Fitting | None) -> tuple[LivePrices, int]:
        """Return prices, and their bound on plans that fit; plans that they lead to are tried."""
        room = self.limit_bytes * self._workers
        target = best.cost if best is not None else max(found.cost for found in self._found.values())
        prices = ascend(
            self.live,
            self._workers,
            room,
            (self._choices(self.free.plan), self.free.cost),
            target,
            self._priced,
        )
        self._lowest_fitting(RUNGS - 1, lambda rung: self._rung(rung, frozenset(), all_live=False))
        if not prices.of:
            return prices, 0
        steeper = [prices.times(RATIO**rung) for rung in range(STEEPER)]
        rung = self._lowest_fitting(
            STEEPER, lambda rung: self._found_for(steeper[rung].priced(), ("steeper", rung))
        )
        if not self._method.closes_gap or self._problem.objective.unit is not CostUnit.BYTES:
            return prices, 0
        if 0 < rung < STEEPER:
            self._planned(searched(steeper[rung].priced(), self._workers, self._method), "steeper")
        proof = searched(prices.priced(), self._workers, self._method)
        self._planned(proof, "proof")
        return prices, prices.bound(proof.lower_bound.value)

    def _found_for(self, problem: Problem, key: object) -> Fitting:
        """Return the plan of the quick search for a problem with prices, searched once."""
        if key not in self._found:
            self._planned(searched(problem, self._workers, self._quick), key)
        return self._found[key]

    def _priced(self, problem: Problem) -> tuple[Choices, int]:
        """Search a problem with prices; return the plan's choices, and its cost without prices."""
        solution = searched(problem, self._workers, self._quick)
        found = self._planned(solution, ("ascent", len(self._found)))
        return (solution.strategies, solution.dimensions), found.cost

    def _fullest(self, found: Fitting) -> frozenset[int]:
        """Return the operations at which a plan holds most."""
        strategies, dimensions = self._choices(found.plan)
        totals = self.live.totals(strategies, dimensions, found.plan.factors)
        least = int(max(totals, default=0) * NEARLY_FULLEST)
        return frozenset(operation for operation, total in enumerate(totals) if total >= least)

    def _choices(self, plan: Plan) -> Choices:
        """Return a plan's strategies and layouts by class."""
        problem, graph = self._problem, self._problem.graph
        operations = dict(zip(problem.operation_class, graph.operations, strict=True))
        tensors = dict(zip(problem.tensor_class, graph.tensors, strict=True))
        strategies = [plan.strategies[operations[number].name] for number in range(len(problem.operators))]
        return (
            [cast(Strategies, strategy) for strategy in strategies],
            [cast(Dimensions, plan.layouts[tensors[n].name].form) for n in range(len(problem.shapes))],
        )

    def _rung(self, rung: int, hot: frozenset[int], all_live: bool = True) -> Fitting:
        """Return the plan at a rung, with prices on the buffers of some operations as well."""
        lowest = LOWEST * self.free.cost / max(self.free.arena_bytes * self._workers, 1)
        price = Fraction(max(round(lowest * RATIO**rung * STEADY), 1), STEADY)
        buffers = self.live.buffer_prices(dict.fromkeys(hot, price), self._workers) if hot else None
        prices = self.live.graded_prices(price, all_live=all_live)
        priced = replace(self._problem, prices=prices, buffer_prices=buffers)
        return self._found_for(priced, (rung, hot, all_live))

    def _split(self, method: Method) -> Fitting:
        """Return a method's plan that replicates nothing."""
        key = "split", method.name
        if key not in self._found:
            self._planned(searched(self._problem.split_only(), self._workers, method), key)
        return self._found[key]

    def _planned(self, solution: Solution, key: object) -> Fitting:
        """Add a solution of the problem with prices as a plan of the one without."""
        problem, free = self._problem, self.free.plan
        cost = problem.objective.total(
            Chosen(problem, solution.factors, solution.strategies, solution.dimensions)
        )
        least = min(free.lower_bound_bytes, cost) if problem.objective.unit is CostUnit.BYTES else 0
        unpriced = replace(
            solution,
            cost=problem.cost(cost),
            lower_bound=problem.cost(least),
            unproven=unbounded(solution.unproven),
        )
        plan = replace(plan_of(problem, unpriced, self._workers, self._method), space=free.space)
        self._found[key] = Fitting(plan, cost, self._needs.arena(plan))
        return self._found[key]


def _by_cost(found: Fitting) -> tuple[int, int]:
    return found.cost, found.arena_bytes


def _by_memory(found: Fitting) -> tuple[int, int]:
    return found.arena_bytes, found.cost
