"""Place a plain graph on the workers of a machine."""

from __future__ import annotations

import numpy as np

from ....errors import PlanError
from ....machines.machine import Machine
from ....simulator.times import NANOSECONDS
from ....support.gc_pause import gc_paused
from ..limit import Limit
from .bound import lower_bound
from .candidates import candidates
from .devices import devices_of
from .from_networkx import PlainGraph
from .graph import NodeSchedule, PlacementDevices
from .lifetimes import live_intervals
from .mend import mend
from .result import Placement
from .simulated import simulate_placement


@gc_paused()
def place_graph(plain: PlainGraph, machine: Machine, workers: int, limit: Limit) -> Placement:
    """Return the placement with the least simulated time of those that are tried and fit.

    Raises PlanError if none fits, and MachineError as `devices_of`.
    """
    devices = devices_of(machine, workers, limit)
    graph = plain.graph
    best = min(_fitting(plain, devices, machine), key=lambda each: each.nanoseconds)
    live = live_intervals(graph, workers, best.order, best.worker)
    nodes = plain.nodes
    return Placement(
        dict(zip(nodes, best.worker.tolist(), strict=True)),
        tuple(nodes[node] for node in best.order.tolist()),
        best.nanoseconds / NANOSECONDS,
        lower_bound(graph, devices) / NANOSECONDS,
        tuple(live.arena_bytes(devices.memory_bytes).tolist()),
    )


def _fitting(plain: PlainGraph, devices: PlacementDevices, machine: Machine) -> list[NodeSchedule]:
    """Return the candidates after moves that make them fit, with their simulated times.

    Raises the PlanError of the first one if none fits.
    """
    found, refusals, seen = [], [], set()
    for each in candidates(plain.graph, devices):
        try:
            worker = mend(plain.graph, devices, each.order, each.worker)
        except PlanError as refusal:
            refusals.append(refusal)
            continue
        key = each.order.tobytes() + np.asarray(worker, np.int64).tobytes()
        if key not in seen:
            seen.add(key)
            times = simulate_placement(plain.graph, devices, machine, each.order, worker)
            found.append(NodeSchedule(worker, each.order, times.nanoseconds))
    if not found:
        raise refusals[0]
    return found
