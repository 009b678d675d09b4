"""Find plans for a limit of memory: prices on live bytes on a ladder, further copies, and plans by cost.

    minimise      cost(x)                over the plans x of a space
    constraint    peak(x) <= limit       the most that a worker of the lowered plan holds

Plans come from the same searches with prices in their tables: on all tensors that are live at the fullest
instant, in grades, and on the buffers of operations that exceed the limit if nothing else fits. The higher
the price, the less plans hold. The least price of a ladder whose plan fits is found by bisection. A coarse
search, as without a given limit, looks at few prices, in steps. The plan that replicates nothing is tried as
well, and so are those that the bound leads to (`lagrangian`). The choices of all these plans are then
combined at finer prices (`among`); without a given limit, those of a few plans at few prices.

If the space keeps what is made, copies are then kept beyond it (`keeping_within`), for the best plan, the
one without a limit and the lightest. With `exact`, plans are looked at in rising order of cost (`by_cost`),
which proves the optimum of small problems; if nothing fits, in rising order of memory.

The workspace of kernels counts. It is slow to find, so it is found for plans that would be returned, and
others are taken to need as much as the last one. Implemented in: `_bisect` (the bisection), `_stepped` (the
coarse search), `settled` (the workspace), `_combine_near` (without a limit), `_bounded` (the bound),
`_with_copies`, `_proven` and `_lightest` (plans by cost), `LiveBytes.graded_prices` and `buffer_prices`
(prices).

Guarantees: of the plans that were tried and fit, the cheapest is found. Its bound holds for the plans of its
space that fit; if it has copies beyond the space, the bound holds without a limit. If none fits, the lightest
is found, and `Fitting.least_bytes` is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from ..plans.cost import CostUnit
from ..plans.plan import Plan
from ..plans.unproven import unbounded
from ..problem.live_bytes import LiveBytes
from ..problem.plan_choices import Choices, choices_of, copies_of
from ..problem.problem import Chosen, Problem
from ..problem.solution import Solution
from .among import Among
from .by_cost import PlansByCost
from .fitting import Fitting, Needs, by_cost, by_memory, cost_of
from .keeping_within import within
from .lagrangian import LivePrices, ascend
from .method import Method, find_method
from .search import Prepared, plan_of, searched
from .split_only import SplitOnly

RUNGS = 80
"""The number of prices on the ladder."""

RATIO = Fraction(9, 8)
"""The ratio of two neighbouring prices."""

LOWEST = Fraction(1, 64)
"""The lowest price of all bytes that the free plan holds, as a part of its cost."""

STEADY = 1 << 10
"""Prices are multiples of its reciprocal, so that sums of them stay small integers."""

MORE_BY_DEFAULT = Fraction(15, 100)
"""Without a limit, a plan may take this much more memory than the recursive one that replicates nothing."""

REPAIRS = 3
"""How often operations that exceed the limit at the highest price get prices on their buffers."""

NEARLY_FULLEST = Fraction(95, 100)
"""Operations at which this part of the most is live get prices as well."""

COARSE = 8
"""Without a limit, and for plans that are recombined, bisection ends at this number of rungs."""

MIDDLE = (RUNGS - 1) // 2
"""The rung that is searched first in these cases; memory is mostly worth prices near its."""

STEP = 5
"""The rungs of a step from there, down if the plan fits, and up if it does not."""

NEAR = 8
"""The rungs below and above one whose plan fits, at whose prices choices are combined without a limit."""

FINER = 4
"""The prices per rung at which they are combined."""

STEEPER = 24
"""The number of prices above those of the bound, at which plans are looked for that fit."""

POINTS = 5
"""The number of plans of a front."""


class Ladder:
    """A ladder of prices, and the plans at its rungs, each searched once."""

    def __init__(
        self, problem: Problem, workers: int, method: Method, live: LiveBytes, needs: Needs, free: Plan
    ) -> None:
        self.live = live
        self.limit_bytes = 0
        self.stride = 1
        """The number of rungs at which bisection ends."""
        self.limited = True
        """Whether a limit was given; if not, combining choices near one rung has to do."""
        self.least_workspace = 0
        self._problem = problem
        self._workers = workers
        self._method = method
        self._quick = find_method("refine") if method.closes_gap else method
        self._needs = needs
        self._split_only = SplitOnly(problem, workers)
        self._allowance = 0
        cost = problem.objective.total(self._chosen(free)) if method.takes_prices else cost_of(free)
        self._found: dict[object, Fitting] = {"free": Fitting(free, cost, needs.arena(free))}
        self._planned_before: dict[object, object] = {}
        """The first key of the plans that were made, by their choices."""

    @classmethod
    def of(cls, prepared: Prepared, workers: int, needs: Needs, free: Plan) -> Ladder:
        """Return the ladder of a search of a prepared problem, given its plan without prices."""
        problem, method = prepared
        return cls(problem, workers, method, LiveBytes.of(problem), needs, free)

    @property
    def free(self) -> Fitting:
        """Return the plan without prices."""
        return self._found["free"]

    def default_limit(self) -> int:
        """Return the limit of arenas if none is given; any at which the free plan is known to fit will do."""
        for least in (self.live.whole_bytes, self.live.least_bytes):  # the second is larger, and slower
            at_least = int(least(self._workers) * (1 + MORE_BY_DEFAULT))
            if self.free.arena_bytes <= at_least:
                return at_least
        return int(self._split(find_method("recursive")).arena_bytes * (1 + MORE_BY_DEFAULT))

    def fits(self, found: Fitting) -> bool:
        """Tell whether a plan fits; a workspace that was not counted is taken to be as large as others."""
        workspace = self._taken if found.workspace_bytes is None else found.workspace_bytes
        return found.arena_bytes + workspace <= self.limit_bytes

    @property
    def _taken(self) -> int:
        """Return what workspaces that were not counted are taken to need."""
        return max(self._allowance, self.least_workspace)

    def measured(self, found: Fitting) -> Fitting:
        """Return a plan with its workspace, unless it does not fit even with the least one."""
        fits = found.arena_bytes + self.least_workspace <= self.limit_bytes
        return self.counted(found) if fits else found

    def counted(self, found: Fitting) -> Fitting:
        """Return a plan with its workspace, unless its arena alone does not fit."""
        workspace = self._needs.workspace
        fits = found.arena_bytes <= self.limit_bytes
        if workspace is None or found.workspace_bytes is not None or not fits:
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

    def found(self, least: int, copies: bool) -> Fitting:
        """Return the cheapest plan found that fits; with `copies`, with further ones if these save bytes.

        If none fits, it is the lightest one. Every plan needs at least `least` bytes.
        """
        best = self._proven(least, combined=copies)
        if not (copies and best.plan.space.keep):
            return best
        lightest = min(self._found.values(), key=by_memory)
        bases = {id(base): base for base in (self._best() or lightest, self.free, lightest)}
        found = best
        for base in bases.values():
            kept = self._with_copies(base, found.cost if self.fits(found) else None)
            found = min((found, *kept), key=lambda each: (not self.fits(each), *by_cost(each)))
        return found if found is best else replace(found, without_copies=best)

    def _with_copies(self, base: Fitting, below: int | None) -> Iterator[Fitting]:
        """Yield the best plan with a plan's strategies that fits with its workspace, if one is found.

        None is looked for if all cost at least `below`. Its bound is that of the plan, which holds without a
        limit, and so with copies, see `lighter`.
        """
        besides = base.cost - base.plan.cost_bytes
        fewer = None if below is None else below - besides
        for _ in range(REPAIRS):
            room = self.limit_bytes - self._taken
            made = within(self._problem.graph, base.plan, room, self._needs.arena, below=fewer)
            if made.plan is base.plan or made.peak_bytes > room:
                return
            settled = self.settled(Fitting(made.plan, besides + made.plan.cost_bytes, made.peak_bytes))
            if settled is not None:
                yield settled
                return

    def _proven(self, least: int, combined: bool) -> Fitting:
        """Return the cheapest plan of the space that was found and fits, with a bound; else the lightest.

        With `combined`, the choices of plans that were found are combined.
        """
        best = self._cheapest()
        if combined:
            self._combine()
            best = self._cheapest_found()
        if not (self._method.closes_gap or best is None):
            return best
        prices, bound = self._bounded(best)
        best = self._cheapest()
        plans = PlansByCost(self.live, self._workers, self.least_workspace)
        if best is None:
            least = max(least, self._lightest(plans))
            best = self._best()
        if self._method.closes_gap and (best is not None or least <= self.limit_bytes):
            cost = None if best is None else best.cost
            bound = max(bound, plans.cheapest(prices, self.limit_bytes, cost, self._needed))
            best = self._best() or best
        if best is None:
            lightest = self.counted(min(self._found.values(), key=by_memory))
            return replace(lightest, least_bytes=least)
        if not self._method.closes_gap or self._problem.objective.unit is not CostUnit.BYTES:
            return best
        bound = min(max(bound - self._repeated(best.plan), best.plan.lower_bound_bytes), best.plan.cost_bytes)
        return replace(best, plan=replace(best.plan, lower_bound_bytes=bound))

    def _lightest(self, plans: PlansByCost) -> int:
        """Look for a plan that fits, the lightest first; return a bound on what all need."""
        lightest = min(self._found.values(), key=by_memory)
        strategies, dimensions = choices_of(self._problem, lightest.plan)
        fullest, _ = self.live.fullest_of(strategies, dimensions, lightest.plan.factors)
        least = min(map(self._at_least, self._found.values()))
        return plans.lightest(fullest, self.limit_bytes, least, self._needed)

    def _needed(self, solution: Solution) -> int:
        """Return the memory that a plan needs, or a bound on it that exceeds the limit."""
        return self._at_least(self._planned(solution, ("looked", len(self._found))))

    def _at_least(self, found: Fitting) -> int:
        measured = self.measured(found)
        uncounted = self.least_workspace if measured.workspace_bytes is None else 0
        return measured.peak_bytes + uncounted

    def _best(self) -> Fitting | None:
        """Return the cheapest plan found so far that fits."""
        return min(filter(self.fits, self._found.values()), key=by_cost, default=None)

    def _repeated(self, plan: Plan) -> int:
        """Return the price of what a plan computes more than once, which bounds include."""
        return self._chosen(plan).repeated_bytes

    def _chosen(self, plan: Plan) -> Chosen:
        strategies, dimensions = choices_of(self._problem, plan)
        copied = copies_of(self._problem, plan)
        return Chosen(self._problem, plan.factors, tuple(strategies), tuple(dimensions), copied)

    def larger(self, than: Fitting) -> tuple[Fitting, ...]:
        """Return the lightest of the plans found that cost less, and the cheapest one."""
        cheaper = [found for found in self._found.values() if found.cost < than.cost and not self.fits(found)]
        least = [min(cheaper, key=order) for order in (by_memory, by_cost) if cheaper]
        different = {id(found): found for found in least}.values()
        return tuple([replace(found, workspace_bytes=than.workspace_bytes) for found in different])

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
            best = min(filter(self.fits, self._found.values()), key=by_cost)
            if not points or best.cost < points[-1].cost:
                points.append(best)
        return tuple(points)

    def _cheapest(self) -> Fitting | None:
        """Return the cheapest plan that bisection finds and that fits with its workspace, or None."""
        while True:
            rung = self._bisect()
            if not self.limited and rung is not None:
                self._combine_near(rung)
            best = self._best()
            if best is None:
                return self._cheapest_found()
            settled = self.settled(best)
            if settled is not None:
                return settled

    def _cheapest_found(self) -> Fitting | None:
        """Return the cheapest plan of those found that fits with its workspace, or None."""
        for best in iter(self._best, None):
            settled = self.settled(best)
            if settled is not None:
                return settled
        lightest = [found for found in self._found.values() if found.workspace_bytes is None]
        for found in sorted(lightest, key=lambda found: found.arena_bytes)[:REPAIRS]:
            measured = self.measured(found)
            if self.fits(measured):
                return measured
        return None

    def _bisect(self) -> int | None:
        """Return the lowest rung whose plan fits, and None if no price on all bytes leads to one that does.

        If that of the highest does not, operations get prices. A coarse search looks at few rungs.
        """
        self._split(self._quick)
        if self.stride == COARSE and (stepped := self._stepped()) is not None:
            return stepped
        high, hot = RUNGS - 1, frozenset[int]()
        for _ in range(REPAIRS):
            top = self._rung(high, hot)
            if self.fits(top):
                break
            hot |= self._fullest(top)
        else:
            return None
        rung = self._lowest_fitting(high, lambda rung: self._rung(rung, hot))
        return None if hot else rung

    def _stepped(self) -> int | None:
        """Return the lowest rung whose plan fits, in steps from the middle; None if no plan there fits."""

        def fits(rung: int) -> bool:
            return self.fits(self._rung(rung, frozenset()))

        rung = MIDDLE
        if fits(rung):
            while rung >= STEP and fits(rung - STEP):
                rung -= STEP
        elif fits(RUNGS - 1):
            while not fits(rung):
                rung += STEP
        else:
            return None
        return rung

    def _combine_near(self, rung: int) -> None:
        """Combine the best plan that fits with larger ones that cost less, at prices near a rung's."""
        best, workers = self._best(), self._workers
        if best is None or not (larger := self.larger(best)):
            return
        among = Among(self.live, workers, [each.plan for each in (best, *larger)])
        _, live = self.live.fullest_of(*choices_of(self._problem, best.plan), best.plan.factors)
        places = range((rung - NEAR) * FINER, (rung + NEAR) * FINER)
        among.at_lowest_price(
            [self._price(Fraction(place, FINER)) for place in places],
            self.limit_bytes * workers,
            Fraction(best.arena_bytes * workers, live),
            lambda solution: self._planned(solution, ("near", len(self._found))).arena_bytes * workers,
        )

    def _price(self, rung: Fraction | int) -> Fraction:
        """Return the price of a byte at a rung."""
        lowest = LOWEST * self.free.cost / max(self.free.arena_bytes * self._workers, 1)
        return Fraction(max(round(lowest * RATIO**rung * STEADY), 1), STEADY)

    def _lowest_fitting(self, high: int, plan: Callable[[int], Fitting]) -> int:
        """Return the lowest rung below `high` whose plan fits, or `high`."""
        low = -1
        while high - low > self.stride:
            rung = (low + high) // 2
            low, high = (low, rung) if self.fits(plan(rung)) else (rung, high)
        return high

    def _combine(self) -> None:
        """Combine the choices of the plans found, at prices that lead to the limit."""
        lowest = LOWEST * self.free.cost / max(self.free.arena_bytes * self._workers, 1)

        def fits(solution: Solution) -> bool:
            return self.fits(self._planned(solution, ("combined", len(self._found))))

        self._among().within(lowest, (self.limit_bytes - self.least_workspace) * self._workers, fits)

    def _among(self) -> Among:
        """Return the choices of the plans found."""
        return Among(self.live, self._workers, [found.plan for found in self._found.values()])

    def _bounded(self, best: Fitting | None) -> tuple[LivePrices, int]:
        """Return prices, and their bound on plans that fit; plans that they lead to are tried."""
        room = (self.limit_bytes - self.least_workspace) * self._workers
        target = best.cost if best is not None else max(found.cost for found in self._found.values())
        among = self._among()
        prices = ascend(
            self.live,
            self._workers,
            room,
            (choices_of(self._problem, self.free.plan), self.free.cost),
            target,
            partial(self._priced, among),
        )
        self._lowest_fitting(RUNGS - 1, lambda rung: self._rung(rung, frozenset(), all_live=False))
        if not prices.of:
            return prices, 0
        steeper = [prices.times(RATIO**rung) for rung in range(STEEPER)]
        rung = self._lowest_fitting(
            STEEPER, lambda rung: self._combined(among, steeper[rung].priced(), ("steeper", rung))
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
            self._planned(self._unbounded(problem, self._quick), key)
        return self._found[key]

    def _unbounded(self, problem: Problem, method: Method) -> Solution:
        """Search a problem for its plan alone: its bound does not hold for the problem without prices."""
        return searched(replace(problem, bounded=False), self._workers, method)

    def _priced(self, among: Among, problem: Problem) -> tuple[Choices, int]:
        """Combine choices at prices; return those of the best plan, and its cost without prices."""
        found = self._combined(among, problem, ("ascent", len(self._found)))
        return choices_of(self._problem, found.plan), found.cost

    def _combined(self, among: Among, problem: Problem, key: object) -> Fitting:
        """Return the plan that combines choices best for a problem with prices, searched once."""
        if key not in self._found:
            self._planned(among.solved(problem), key)
        return self._found[key]

    def _fullest(self, found: Fitting) -> frozenset[int]:
        """Return the operations at which a plan holds most."""
        strategies, dimensions = choices_of(self._problem, found.plan)
        totals = self.live.totals(strategies, dimensions, found.plan.factors)
        least = int(max(totals, default=0) * NEARLY_FULLEST)
        return frozenset(operation for operation, total in enumerate(totals) if total >= least)

    def _rung(self, rung: int, hot: frozenset[int], all_live: bool = True) -> Fitting:
        """Return the plan at a rung, with prices on the buffers of some operations as well."""
        price = self._price(rung)
        buffers = self.live.buffer_prices(dict.fromkeys(hot, price), self._workers) if hot else None
        prices = self.live.graded_prices(price, all_live=all_live)
        priced = replace(self._problem, prices=prices, buffer_prices=buffers)
        return self._found_for(priced, (rung, hot, all_live))

    def _split(self, method: Method) -> Fitting:
        """Return a method's plan that replicates nothing."""
        key = "split", method.name
        if key not in self._found:
            self._planned(self._split_only.solution(method), key)
        return self._found[key]

    def _planned(self, solution: Solution, key: object) -> Fitting:
        """Add a solution of the problem with prices as a plan of the one without."""
        problem, free = self._problem, self.free.plan
        choices = solution.strategies, solution.dimensions, tuple(sorted(solution.copies.items()))
        if choices in self._planned_before:
            self._found[key] = self._found[self._planned_before[choices]]
            return self._found[key]
        self._planned_before[choices] = key
        chosen = Chosen.of(problem, solution)
        cost = problem.objective.total(chosen)
        least = min(free.lower_bound_bytes, cost) if problem.objective.unit is CostUnit.BYTES else 0
        unpriced = replace(
            solution,
            cost=problem.cost(cost),
            lower_bound=problem.cost(least),
            unproven=unbounded(solution.unproven),
        )
        made = plan_of(problem, unpriced, self._workers, self._method, chosen)
        plan = replace(made, space=free.space)
        self._found[key] = Fitting(plan, cost, self._needs.arena(plan))
        return self._found[key]
