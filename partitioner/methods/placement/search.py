"""The best placement by simulation: whole operations on workers, or split inside groups of workers.

    states         the worker of every operation, or its group, and the order of all operations
    cost           the simulated time of an iteration
    candidates     for every number of groups: the best placement of each placer, by emulation under several
                   orders, and what moves along the deciding path make of the best one (`refine`)

The improved candidate, the best ones and one device are made to fit the memory and simulated, for each number
of groups. If none fits, moves for tighter limits are tried. Arenas decide whether plans fit; of the fastest
one the scratch of kernels counts as well. If that is too much, the plan's placement is made to fit once more,
with so much to spare.

Guarantees: the plan fits the memory, and is not slower than any candidate that was simulated and fits.
Implemented in: `place`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....errors import PlanError
from ...plans.plan import Plan
from ..flexflow.configurations import divisors
from ..simulated import SimulatedSearch
from .candidates import candidates
from .graph import NodeSchedule
from .placing import Placing


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A placement and its plan."""

    placing: Placing
    """The nodes and the groups."""

    schedule: NodeSchedule
    """The placement."""

    plan: Plan
    """The plan, whose arenas fit."""

    @property
    def seconds(self) -> float:
        assert self.plan.step_seconds is not None
        return self.plan.step_seconds


def place(asked: SimulatedSearch) -> Plan:
    """Return the fastest plan that fits. Raises PlanError if none is found."""
    found: list[_Candidate] = []
    refused: list[PlanError] = []
    unfit: list[tuple[Placing, NodeSchedule]] = []
    for groups in [asked.groups] if asked.groups else reversed(divisors(asked.workers)):
        placing = Placing(asked, groups)
        nodes, devices = placing.training.nodes, placing.devices
        for schedule in candidates(nodes, devices, placing.tied, placing.orders):
            try:
                found.append(_Candidate(placing, schedule, placing.fitting(schedule)))
            except PlanError as error:
                refused.append(error)
                unfit.append((placing, schedule))
    for placing, schedule in unfit if not found else ():
        try:
            found.append(_Candidate(placing, schedule, placing.fitting_tighter(schedule)))
        except PlanError:
            continue
    while found:
        best = min(found, key=lambda each: each.seconds)
        spare = asked.lacking(best.plan)
        if not spare:
            return replace(best.plan, method="place")
        found.remove(best)
        try:
            plan = best.placing.fitting(best.schedule, spare)
        except PlanError as error:
            refused.append(error)
            continue
        if not asked.excess(plan):
            found.append(replace(best, plan=plan))
    raise refused[0]
