"""ParDNN's placement of whole operations, as a plan (ParDNN, sections 3 and 4).

    states         the worker of every operation; the order is that in which an emulation runs them
    cost           the emulated time of an iteration
    steps          slicing into clusters, mapping, balancing (`place`); then moves until the memory holds

Guarantees: the plan fits the memory of each worker, arena and scratch of kernels included. Implemented in:
`pardnn`, `placing.Placing.fitting` (the memory).
"""

from __future__ import annotations

from dataclasses import replace

from ....errors import PlanError
from ...plans.plan import Plan
from ..placement.placing import ROUNDS, Placing
from ..placement.priorities import emulated
from ..simulated import SimulatedSearch
from .pardnn import place


def pardnn(asked: SimulatedSearch) -> Plan:
    """Return the plan of ParDNN's placement. Raises PlanError if no moves make it fit the memory."""
    placing = Placing(asked, asked.workers)
    nodes, devices = placing.training.nodes, placing.devices
    _, schedule = emulated(nodes, devices, place(nodes, devices), placing.orders)
    spare = 0
    for _ in range(ROUNDS):
        plan = placing.fitting(schedule, spare)
        spare = asked.lacking(plan)
        if not spare:
            return replace(plan, method="pardnn")
    raise PlanError(
        f"arenas fit the memory of each worker, but not next to the {spare:,} bytes of scratch that kernels "
        "take; allow more (--memory), or use more workers"
    )
