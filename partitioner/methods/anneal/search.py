"""Annealing from the plans of other methods.

    states         what decisions of the SOAP space do; those that do not fit it do what the first plan says
    cost           the simulated time of an iteration
    moves          those of `moves`, within a chain; those of `rewrites`, of whole plans, between chains
    starts         data parallelism served by groups (`group_servers`); the plans of the methods that take
                   seconds, for small graphs with `exact`; ParDNN's placement, experts' strategies, a random
                   strategy. Each is rewritten at once if it is one of the `REWRITTEN` fastest so far
    chains         from each of the `STARTS` fastest starts; then `RESTARTS` from the best so far. The plan
                   of a chain is rewritten if it is the best so far
    rewriting      other orders, several hops, holders of small sums. Plans near the fastest one so far
                   (`NEAR`) get the order of a list schedule as well, and their decisions that weigh most
                   get other splits (`sweep`). The swept plan is rewritten again, and both may start chains
    last chain     from the best plan to fewer bytes (`fewer_bytes`), in at most its time, or the part more
                   that the setting `slower` allows. If another plan that was found moves fewer in that time,
                   it is returned
    temperature    falls geometrically, from that of the setting to 1 / `COOLED` of it; the last chain has
                   the latter
    stop           if the seconds are spent, starts after the first and chains are left out

Sums of the forward pass are split as well. Guarantees: the plan fits the memory, and is not slower than the
fastest start that fits, unless `slower` allows it. Implemented in: `anneal`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from random import Random

from ....errors import PlanError
from ...costs.plan_bytes import KnownCounts
from ...layouts.step_split import prime_factors
from ...plans.compose import compose
from ...plans.plan import Plan
from ...plans.recounted import recounted, with_stops
from ...plans.sampling import Sampling
from ..budget import Budget
from ..flexflow.chains import Chains, Visited
from ..flexflow.configurations import Drawable, drawables
from ..flexflow.experts import candidates
from ..flexflow.soap import Soap, find_soap
from ..flexflow.strategy import Strategies
from ..flexflow.walk import State, StrategyWalk
from ..pardnn.search import pardnn
from ..simulated import SimulatedSearch
from .fewer_bytes import FewerBytesWalk
from .group_servers import served_by_groups
from .moves import Moves
from .neighbours import Neighbours
from .open_decisions import OpenDecisions
from .reading import fixed_decisions, state_of
from .rewrites import Rewrites, Timed
from .sweep import Sweep
from .windows import DecisionWindows

REWRITTEN = 6
NEAR = 1.05
"""The time of a plan that gets the order of a list schedule, over that of the fastest one so far."""
STARTS = 3
RESTARTS = 2
COOLED = 100.0


def anneal(asked: SimulatedSearch) -> Plan:
    """Return the fastest plan that fits, of the starts and what chains make of them.

    Raises PlanError if no start fits the memory.
    """
    return _Annealing(asked).run()


class _Annealing:
    """The search of one graph."""

    def __init__(self, asked: SimulatedSearch) -> None:
        self.asked = asked
        self.budget = Budget(asked.sampling, asked.watch)
        self.rewrites = Rewrites(asked, self.budget.show)
        self.counts = KnownCounts(prime_factors(asked.workers))
        self.fastest: int | None = None
        """The least time of rewritten plans before they got the order of a list schedule."""
        self.least_excess = 0
        """By how many bytes the lightest start that does not fit exceeds the memory."""

    @cached_property
    def soap(self) -> Soap:
        """Return the SOAP space, which most starts do not need."""
        return find_soap(self.asked.graph, self.asked.workers, sums=True)

    @cached_property
    def drawn(self) -> list[Drawable]:
        """Return the configurations of each decision."""
        return drawables(self.soap.decisions, self.asked.workers)

    @cached_property
    def strategies(self) -> Strategies:
        """Return the strategies of the space."""
        return Strategies(self.soap, self.asked.space)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Return which decisions touch the same tensors."""
        return Neighbours(self.soap)

    @cached_property
    def windows(self) -> DecisionWindows:
        """Return the windows of decisions that are solved together."""
        return DecisionWindows(self.strategies, self.drawn, self.neighbours, self.asked.machine)

    def run(self) -> Plan:
        """Return the best plan."""
        starts = self._starts()
        sampling, first = self.asked.sampling, starts[:STARTS]
        chains = Chains(len(first) + RESTARTS + 1, self.budget)
        best, found = starts[0], list(starts)
        for number in range(len(first) + RESTARTS):
            if self.budget.spent:
                break
            start = first[number] if number < len(first) else best
            made = self._chain(chains, start, Random(f"{sampling.seed} {number}"))
            if made.nanoseconds < best.nanoseconds:
                made = best = self._rewritten(made)[0]
            found.append(made)
        if not self.budget.spent:
            most = _allowed(best, sampling)
            found.append(self._chain(chains, best, Random(f"{sampling.seed} bytes"), most))
            self.budget.show(found[-1].nanoseconds)
        most = _allowed(min(found, key=_time), sampling)
        within = [each for each in reversed(found) if each.nanoseconds <= most]
        by_bytes = sorted(within, key=lambda each: each.plan.cost_bytes)
        best = next(each for each in by_bytes if self._fits(each))
        simulated = self.rewrites.simulated(best.plan)
        return replace(
            best.plan,
            method="anneal",
            sampling=sampling,
            step_seconds=simulated.seconds,
            step_bound_seconds=simulated.bound_seconds,
        )

    def _starts(self) -> list[Timed]:
        """Return the starts, the fastest one first. Equal times count once.

        To count memory takes time, so those that are slower than `REWRITTEN` others may not fit. Raises
        PlanError if none fits the memory.
        """
        found: list[Timed] = []
        rewritten: dict[int, list[Timed]] = {}
        seen = set[int]()
        for plan in self._planned():
            start = Timed(self.rewrites.nanoseconds(plan), plan)
            if start.nanoseconds in seen:
                continue
            is_fast = len(found) < REWRITTEN or start.nanoseconds < found[REWRITTEN - 1].nanoseconds
            if is_fast and not self._fits(start):
                continue
            seen.add(start.nanoseconds)
            self.budget.show(start.nanoseconds)
            insort(found, start, key=_time)
            if is_fast:
                rewritten[start.nanoseconds] = self._rewritten(start)
            if self.budget.spent:
                break
        if not found:
            raise PlanError(
                "no plan was found that fits the memory of each worker: the lightest start of 'anneal' needs "
                f"{self.least_excess:,} bytes more; allow more (--memory), or use more workers"
            )
        made = [after for each in found for after in rewritten.get(each.nanoseconds, [each])]
        return sorted(made, key=_time)

    def _rewritten(self, found: Timed) -> list[Timed]:
        """Return a plan after moves of whole plans. If it is near the fastest one so far, it gets a list
        schedule, and if a sweep makes it faster, the swept one comes before it.
        """
        moved = self.rewrites.best(found)
        self.fastest = min(moved.nanoseconds, self.fastest or moved.nanoseconds)
        made = [moved]
        if moved.nanoseconds <= NEAR * self.fastest:
            made = [self.rewrites.scheduled(moved)]
            swept = self._swept(made[0])
            if swept is not made[0]:
                made.insert(0, self.rewrites.scheduled(self.rewrites.best(swept)))
        return [
            each if each is found else replace(each, plan=recounted(self.asked.graph, each.plan))
            for each in made
        ]

    def _planned(self) -> Iterator[Plan]:
        """Yield the plans of the starts, whether or not they fit."""
        asked = self.asked
        with suppress(PlanError):
            yield served_by_groups(asked.graph, asked.workers, asked.machine)
        yield from asked.plans()
        with suppress(PlanError):
            yield pardnn(asked)
        draw = Random(f"{asked.sampling.seed} first")
        random = tuple(each.draw(draw) for each in self.drawn)
        for _, strategy in (*candidates(self.strategies), ("random", random)):
            yield self.strategies.plan(strategy)

    def _fits(self, found: Timed) -> bool:
        """Tell whether a plan fits the memory, and keep the least by which one does not."""
        excess = self.asked.excess(found.plan)
        if excess:
            self.least_excess = min(excess, self.least_excess or excess)
        return not excess

    def _chain(self, chains: Chains, start: Timed, draw: Random, most: int | None = None) -> Timed:
        """Return the best plan that a chain visits and that fits; the start if there is none.

        The chain is to less time. With `most` it is to fewer bytes, and an iteration takes at
        most that many nanoseconds.
        """
        first, state, open_decisions = self._opened(start)
        simulated = self.rewrites.simulated(first)
        weights = simulated.deciding if most is None else simulated.moved
        moves = Moves(self.soap, self.drawn, self.neighbours, self.windows, open_decisions, weights)
        if most is None:
            walk = StrategyWalk(simulated, self.strategies, state, moves)
            visited = chains.run(walk, draw, lambda spent: COOLED**-spent)
        else:
            walk = FewerBytesWalk(simulated, self.strategies, state, moves, most)
            visited = chains.run(walk, draw, lambda spent: 1 / COOLED, start.nanoseconds)
        return self._last_fitting(start, first, visited, most)

    def _swept(self, start: Timed) -> Timed:
        """Return the best plan of a sweep that fits; the start if there is none."""
        first, state, open_decisions = self._opened(start)
        simulated = self.rewrites.simulated(first)
        swept = Sweep(simulated, self.strategies, state, open_decisions, self.neighbours, self.budget)
        return self._last_fitting(start, first, swept.run())

    def _opened(self, start: Timed) -> tuple[Plan, State, OpenDecisions]:
        """Return a plan as it is composed, the state of its decisions, and those that may change."""
        plan = self._composed(start.plan, (), ())
        fixed = fixed_decisions(self.soap, plan)
        return plan, state_of(self.strategies, plan), OpenDecisions(self.soap, self.drawn, fixed)

    def _last_fitting(
        self, start: Timed, first: Plan, visited: Sequence[Visited], most: int | None = None
    ) -> Timed:
        """Return the last plan of those that a walk visits that fits, or the start if none is better.

        The walk begins with the plan `first`. It is to less time, or with `most` to fewer bytes in at most
        that many nanoseconds.
        """
        low, high = 0, len(visited)
        best = start
        while low < high:
            middle = high - 1 if high == len(visited) else (low + high) // 2
            plan = self._composed(first, visited[0].state, visited[middle].state)
            if not self.asked.excess(plan):
                time = self.rewrites.nanoseconds(plan)
                fewer = plan.cost_bytes < start.plan.cost_bytes
                if time < start.nanoseconds or (most is not None and time <= most and fewer):
                    best = Timed(time, plan)
                low = middle + 1
            else:
                high = middle
        return best

    def _composed(self, plan: Plan, before: State, after: State) -> Plan:
        """Return a plan in which the decisions that differ are replaced."""
        graph = self.asked.graph
        operations = dict(plan.strategies)
        tensors = {t.name: plan.layouts[t.name].form for t in graph.tensors if t.alias is None}
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if new is not None and new is not old:
                done, held = self.strategies.forms(number, new)
                operations.update(done)
                tensors.update(held)
        found = compose(
            graph,
            self.asked.workers,
            operations,
            tensors,
            copies=plan.copies,
            order=plan.written_order,
            counts=self.counts,
        )
        return with_stops(graph, found, plan, self.counts)


def _allowed(fastest: Timed, sampling: Sampling) -> int:
    """Return the most nanoseconds that an iteration may take."""
    return int(fastest.nanoseconds * (1 + sampling.slower))


def _time(each: Timed) -> int:
    return each.nanoseconds
