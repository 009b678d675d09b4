"""Which nodes are urgent: orders under which placements are emulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ....support.integers import Integers
from .emulate import TimedSchedule, emulate
from .graph import PlacementDevices, PlacementGraph
from .levels import levels

PRIORITIES = 2
"""The number of priorities under which a placement is emulated, besides those that a caller adds."""

Orders = Callable[[Integers], Mapping[str, Integers]]
"""Returns more priorities of nodes by name, given the worker of every node; the highest runs first."""


def no_orders(worker: Integers) -> Mapping[str, Integers]:
    """Return no priorities."""
    return {}


def emulated(
    graph: PlacementGraph, devices: PlacementDevices, worker: Integers, orders: Orders = no_orders
) -> tuple[str, TimedSchedule]:
    """Emulate a placement under all priorities; return those under which it ends first, and the schedule."""
    found = [
        (name, emulate(graph, devices, worker, priority))
        for name, priority in {**priorities(graph, devices, worker), **orders(worker)}.items()
    ]
    return min(found, key=lambda each: each[1].nanoseconds)


def priorities(graph: PlacementGraph, devices: PlacementDevices, worker: Integers) -> dict[str, Integers]:
    """Return the priorities of nodes by name: the graph's order, and bottom levels under a placement.

    The graph's order comes first, since it often needs less memory.
    """
    return {
        "graph-order": -np.arange(graph.count),
        "bottom-level": levels(graph, devices, worker).bottom,
    }
