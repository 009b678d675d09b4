"""ParDNN's placement of whole operations, as a plan (ParDNN, sections 3 and 4).

    states         the worker of every operation; the order is that in which an emulation runs them
    cost           the emulated time of an iteration
    steps          slicing into clusters, mapping, balancing (`place`); then moves until the memory holds

Guarantees: the plan fits the memory of each worker, arena and scratch of kernels included. Implemented in:
`pardnn`, `placing.Placing.fitting` (the memory). `heuristic` uses the paper's own ways to keep within memory
instead, which guarantee nothing; a plan that exceeds the memory is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....errors import PlanError
from ....support.integers import Integers
from ...plans.plan import Plan
from ..placement.graph import PlacementDevices, PlacementGraph
from ..placement.placing import ROUNDS, Placing
from ..placement.priorities import emulated
from ..simulated import SimulatedSearch
from .heuristics import heuristic_one, heuristic_two
from .pardnn import place

Heuristic = Callable[[PlacementGraph, PlacementDevices, Integers, Integers], Integers]
"""Takes a graph, devices, an order and the workers of nodes; returns workers that exceed memory less."""


def pardnn(asked: SimulatedSearch) -> Plan:
    """Return the plan of ParDNN's placement. Raises PlanError if no moves make it fit the memory."""
    placing = Placing(asked, asked.workers)
    nodes, devices = placing.training.nodes, placing.devices
    _, schedule = emulated(nodes, devices, place(nodes, devices), placing.orders)
    spare = 0
    for _ in range(ROUNDS):
        plan = placing.fitting_tighter(schedule, spare)
        spare = asked.lacking(plan)
        if not spare:
            return replace(plan, method="pardnn")
    raise PlanError(
        f"arenas fit the memory of each worker, but not next to the {spare:,} bytes of scratch that kernels "
        "take; allow more (--memory), or use more workers"
    )


def heuristic(name: str, relieve: Heuristic, asked: SimulatedSearch) -> Plan:
    """Return ParDNN's placement after a heuristic for memory. Raises PlanError if a worker exceeds its."""
    placing = Placing(asked, asked.workers)
    nodes, devices = placing.whole, placing.devices
    _, schedule = emulated(nodes, devices, place(nodes, devices), placing.orders)
    if devices.memory_bytes is not None:
        worker = relieve(nodes, devices, schedule.order, schedule.worker)
        schedule = replace(schedule, worker=worker)
    plan = replace(placing.plan(schedule), method=name)
    excess = asked.excess(plan)
    if excess:
        raise PlanError(
            f"{name!r} leaves {excess:,} bytes more on a worker than it may hold, scratch of kernels "
            "included; the method 'pardnn' makes plans fit if it can"
        )
    return plan


heuristic_1 = partial(heuristic, "pardnn-heuristic-1", heuristic_one)
heuristic_2 = partial(heuristic, "pardnn-heuristic-2", heuristic_two)
