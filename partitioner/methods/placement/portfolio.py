"""The placements of all placers, the one that ends first in front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .emulate import TimedSchedule, emulate
from .graph import Devices, Integers, PlacementGraph
from .levels import levels
from .placers import placers


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSchedule:
    """A placement that was emulated."""

    placer: str
    """The name of the placer."""

    priority: str
    """The name of the priorities under which the placement ends first."""

    schedule: TimedSchedule
    """Where and when every node runs."""


def portfolio(
    graph: PlacementGraph, devices: Devices, tied: Integers | None = None
) -> tuple[PlacedSchedule, ...]:
    """Return the placement of every placer, the one that ends first in front; ties keep the placers' order.

    `tied` gives for each node the one in whose chunk it belongs, see `chunks`.
    """
    found = [
        PlacedSchedule(name, *emulated(graph, devices, place(graph, devices)))
        for name, place in placers(tied).items()
    ]
    return tuple(sorted(found, key=lambda each: each.schedule.nanoseconds))


def emulated(graph: PlacementGraph, devices: Devices, worker: Integers) -> tuple[str, TimedSchedule]:
    """Emulate a placement under all priorities; return those under which it ends first, and the schedule."""
    found = [
        (name, emulate(graph, devices, worker, priority))
        for name, priority in priorities(graph, devices, worker).items()
    ]
    return min(found, key=lambda each: each[1].nanoseconds)


def priorities(graph: PlacementGraph, devices: Devices, worker: Integers) -> dict[str, Integers]:
    """Return the priorities of nodes by name: bottom levels under a placement, and the graph's order."""
    return {
        "bottom-level": levels(graph, devices, worker).bottom,
        "graph-order": -np.arange(graph.count),
    }
