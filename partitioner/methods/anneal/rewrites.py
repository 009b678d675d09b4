"""Moves of whole plans between chains. The strategies of operations stay; all is simulated again.

    order    the operations run in another order (`orders`)
    list     they run in the order of a list schedule (`scheduled_orders`), which takes longer to find
    hops     partial results are summed in groups first, and readers keep copies that groups share out
             (`several_hops`), if the space has copies
    roots    small sums are held by one worker each (`rooted_sums`); then hops again, to and from that worker

A move is kept if the plan fits the memory and an iteration takes less time. To count memory takes longer
than to simulate, so it is counted once after all moves, and after each of them only if the plan does not fit
then. The bytes of plans are not counted again. Implemented in: `Rewrites.best`, `Rewrites.scheduled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from ....dataflow.graph import Graph
from ....simulator.simulation import Simulation
from ....simulator.times import NANOSECONDS
from ...plans.plan import Plan
from ...plans.simulation import Simulations
from ..several_hops import SeveralHops
from ..simulated import SimulatedSearch
from .orders import orders
from .rooted_sums import with_rooted_sums
from .scheduled_orders import scheduled_orders

Orders = Callable[[Graph, Simulation], Iterable[tuple[str, ...]]]
"""Return other orders of the operations of a graph, for the tasks that are simulated."""

MayTake = Callable[["Timed"], bool]
"""Tells whether a faster plan may be taken."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A plan and the time of an iteration."""

    nanoseconds: int
    """The simulated time."""

    plan: Plan
    """The plan."""


class Rewrites:
    """The moves of the whole plans of a search."""

    def __init__(self, asked: SimulatedSearch, show: Callable[[int], None]) -> None:
        """`show` is given the time of each faster plan."""
        self._asked = asked
        self._show = show
        self._simulations = Simulations(asked.graph, asked.machine)
        self._hops: dict[tuple[int, ...], SeveralHops] = {}
        """The ways of tensors in plans, by their factors."""

    def nanoseconds(self, plan: Plan) -> int:
        """Return the time of an iteration."""
        return self.simulated(plan).nanoseconds

    def simulated(self, plan: Plan) -> Simulation:
        """Return the simulation of a plan."""
        return self._simulations.of(plan)

    def best(self, found: Timed) -> Timed:
        """Return the plan after all moves that take little time and make it faster."""
        return self._fitting(found, self._moved)

    def scheduled(self, found: Timed) -> Timed:
        """Return the plan in the order of a list schedule if that is faster, else as it is."""
        return self._fitting(found, partial(self._reordered, scheduled_orders))

    def _fitting(self, found: Timed, moves: Callable[[MayTake, Timed], Timed]) -> Timed:
        """Return a plan after moves that leave it within the memory."""
        if self._asked.memory is not None:
            moved = moves(lambda each: True, found)
            if moved is found or self._fits(moved):
                return moved
        return moves(self._fits, found)

    def _fits(self, found: Timed) -> bool:
        """Tell whether a plan fits the memory. If it does, its time is shown."""
        if self._asked.excess(found.plan):
            return False
        self._show(found.nanoseconds)
        return True

    def _moved(self, may_take: MayTake, found: Timed) -> Timed:
        found = self._reordered(orders, may_take, found)
        while True:
            if self._asked.space.keep:
                found = self._reordered(orders, may_take, self._hopped(may_take, found))
            rooted = self._rooted(may_take, found)
            if rooted is found:
                return found
            found = self._reordered(orders, may_take, rooted)

    def _reordered(self, others: Orders, may_take: MayTake, found: Timed) -> Timed:
        for order in others(self._asked.graph, self.simulated(found.plan)):
            found = self._faster(may_take, found, replace(found.plan, written_order=order))
        return found

    def _hopped(self, may_take: MayTake, found: Timed) -> Timed:
        hops = self._hops_of(found.plan)
        plan = hops.faster(found.plan, lambda plan: self.nanoseconds(plan) / NANOSECONDS)
        return self._faster(may_take, found, plan)

    def _rooted(self, may_take: MayTake, found: Timed) -> Timed:
        asked, movements = self._asked, self._hops_of(found.plan).movements
        plan = with_rooted_sums(asked.graph, found.plan, asked.machine, movements)
        return self._faster(may_take, found, plan)

    def _hops_of(self, plan: Plan) -> SeveralHops:
        """Return the ways of tensors in plans with these factors."""
        if plan.factors not in self._hops:
            asked = self._asked
            self._hops[plan.factors] = SeveralHops(asked.graph, asked.machine, asked.workers, plan.factors)
        return self._hops[plan.factors]

    def _faster(self, may_take: MayTake, found: Timed, plan: Plan) -> Timed:
        """Return a plan if it is faster and may be taken, else the one that was found before."""
        faster = Timed(self.nanoseconds(plan), plan)
        return faster if faster.nanoseconds < found.nanoseconds and may_take(faster) else found
