"""Place a plain graph on the workers of a machine."""

from __future__ import annotations

from ....errors import PlanError
from ....machines.machine import Machine
from ....simulator.times import NANOSECONDS
from ....support.gc_pause import gc_paused
from ....support.integers import Integers
from ..limit import Limit, worker_limits
from .bound import lower_bound
from .candidates import candidates
from .devices import devices_of
from .from_networkx import PlainGraph
from .graph import NodeSchedule, PlacementDevices, PlacementGraph
from .lifetimes import live_intervals
from .mend import mend
from .result import Placement
from .simulated import simulate_placement


@gc_paused()
def place_graph(plain: PlainGraph, machine: Machine, workers: int, limit: Limit) -> Placement:
    """Return the placement with the least simulated time of those that are tried and fit.

    Raises PlanError if none fits, and MachineError as `devices_of`.
    """
    devices = devices_of(machine, workers, worker_limits(limit, workers))
    graph, nodes = plain.graph, plain.nodes
    best = _best_fitting(graph, devices, machine)
    live = live_intervals(graph, workers, best.order, best.worker)
    return Placement(
        dict(zip(nodes, best.worker.tolist(), strict=True)),
        tuple(nodes[node] for node in best.order.tolist()),
        best.nanoseconds / NANOSECONDS,
        lower_bound(graph, devices) / NANOSECONDS,
        tuple(live.arena_bytes(devices.memory_bytes).tolist()),
    )


def _best_fitting(graph: PlacementGraph, devices: PlacementDevices, machine: Machine) -> NodeSchedule:
    """Return the candidate that is fastest after moves that make it fit, with its simulated time.

    A candidate that is slower before such moves than another one after them is not tried. Raises the
    PlanError of the fastest candidate if none fits.
    """

    def timed(order: Integers, worker: Integers) -> NodeSchedule:
        times = simulate_placement(graph, devices, machine, order, worker)
        return NodeSchedule(worker, order, times.nanoseconds)

    found = [timed(each.order, each.worker) for each in candidates(graph, devices)]
    best: NodeSchedule | None = None
    refusals = []
    for each in sorted(found, key=lambda each: each.nanoseconds):
        if best is not None and each.nanoseconds >= best.nanoseconds:
            break
        try:
            worker = mend(graph, devices, each.order, each.worker)
        except PlanError as refusal:
            refusals.append(refusal)
            continue
        mended = each if (worker == each.worker).all() else timed(each.order, worker)
        if best is None or mended.nanoseconds < best.nanoseconds:
            best = mended
    if best is None:
        raise refusals[0]
    return best
