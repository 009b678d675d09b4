"""The placements of all placers, the one that ends first in front."""

from __future__ import annotations

from dataclasses import dataclass

from ....support.integers import Integers
from .emulate import TimedSchedule
from .graph import PlacementDevices, PlacementGraph
from .placers import placers
from .priorities import Orders, emulated, no_orders


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
    graph: PlacementGraph, devices: PlacementDevices, tied: Integers | None = None, orders: Orders = no_orders
) -> tuple[PlacedSchedule, ...]:
    """Return the placement of every placer, the one that ends first in front; ties keep the placers' order.

    `tied` gives for each node the one in whose chunk it belongs, see `chunks`; `orders` more priorities under
    which placements are emulated.
    """
    found = [
        PlacedSchedule(name, *emulated(graph, devices, place(graph, devices), orders))
        for name, place in placers(tied).items()
    ]
    return tuple(sorted(found, key=lambda each: each.schedule.nanoseconds))
