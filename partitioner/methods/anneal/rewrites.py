"""Moves of whole plans between chains. The strategies of operations stay; all is simulated again.

    order    the operations run in another order (`orders`)
    list     they run in the order of a list schedule (`scheduled_orders`), which takes longer to find
    hops     partial results are summed in groups first, and readers keep copies that groups share out
             (`several_hops`), if the space has copies
    roots    small sums are held by one worker each (`rooted_sums`); then hops again, to and from that worker

A move is kept if the plan fits the memory and an iteration takes less time. The bytes of plans are not
counted again. Implemented in: `Rewrites.best`, `Rewrites.scheduled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ....dataflow.graph import Graph
from ....simulator.simulation import Simulation
from ....simulator.times import NANOSECONDS, TaskTimes
from ...plans.plan import Plan
from ...plans.simulation import Simulations
from ..several_hops import SeveralHops
from ..simulated import SimulatedSearch
from .orders import orders
from .rooted_sums import with_rooted_sums
from .scheduled_orders import scheduled_orders

Orders = Callable[[Graph, Simulation], Iterable[tuple[str, ...]]]
"""Return other orders of the operations of a graph, for the tasks that are simulated."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A plan and the time of an iteration."""

    nanoseconds: int
    """The simulated time."""

    plan: Plan
    """The plan."""


class Rewrites:
    """The moves of the whole plans of a search."""

    def __init__(self, asked: SimulatedSearch, times: TaskTimes, show: Callable[[int], None]) -> None:
        """`show` is given the time of each faster plan."""
        self._asked = asked
        self._show = show
        self._simulations = Simulations(asked.graph, asked.machine, times)
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
        found = self._reordered(found, orders)
        while True:
            if self._asked.space.keep:
                found = self._reordered(self._hopped(found), orders)
            rooted = self._rooted(found)
            if rooted is found:
                return found
            found = self._reordered(rooted, orders)

    def scheduled(self, found: Timed) -> Timed:
        """Return the plan in the order of a list schedule if that is faster, else as it is."""
        return self._reordered(found, scheduled_orders)

    def _reordered(self, found: Timed, others: Orders) -> Timed:
        for order in others(self._asked.graph, self.simulated(found.plan)):
            found = self._faster(found, replace(found.plan, written_order=order))
        return found

    def _hopped(self, found: Timed) -> Timed:
        hops = self._hops_of(found.plan)
        return self._faster(found, hops.faster(found.plan, lambda plan: self.nanoseconds(plan) / NANOSECONDS))

    def _rooted(self, found: Timed) -> Timed:
        asked, movements = self._asked, self._hops_of(found.plan).movements
        return self._faster(found, with_rooted_sums(asked.graph, found.plan, asked.machine, movements))

    def _hops_of(self, plan: Plan) -> SeveralHops:
        """Return the ways of tensors in plans with these factors."""
        if plan.factors not in self._hops:
            asked = self._asked
            self._hops[plan.factors] = SeveralHops(asked.graph, asked.machine, asked.workers, plan.factors)
        return self._hops[plan.factors]

    def _faster(self, found: Timed, plan: Plan) -> Timed:
        """Return a plan if it is faster and fits, else the one that was found before."""
        time = self.nanoseconds(plan)
        if time >= found.nanoseconds or self._asked.excess(plan):
            return found
        self._show(time)
        return Timed(time, plan)
