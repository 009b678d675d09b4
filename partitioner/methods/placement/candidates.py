"""The placements from which the best one that fits is chosen by simulation."""

from __future__ import annotations

from collections.abc import Iterator

from ....support.integers import Integers
from .graph import NodeSchedule, PlacementDevices, PlacementGraph
from .lifetimes import live_intervals
from .portfolio import portfolio
from .priorities import Orders, no_orders
from .refine import improve

SIMULATED = 3
"""The placements that are simulated, besides the improved one and one device."""

EMULATIONS = 400
"""The emulations in which moves improve a placement of up to `NODES` nodes; fewer if there are more."""

NODES = 10_000
"""See `EMULATIONS`."""


def candidates(
    graph: PlacementGraph, devices: PlacementDevices, tied: Integers | None = None, orders: Orders = no_orders
) -> Iterator[NodeSchedule]:
    """Yield the placements to simulate, the improved one first; `tied` and `orders` as in `portfolio`.

    The best placements on a half of the workers, a quarter and so on are among them: with messages between
    fewer workers an iteration may take less time.
    """
    found = portfolio(graph, devices, tied, orders)
    order, memory = found[0].schedule.order, devices.memory_bytes

    def fits(worker: Integers) -> bool:
        if memory is None:
            return True
        return bool((live_intervals(graph, devices.workers, order, worker).peak_bytes <= memory).all())

    budget = EMULATIONS * NODES // max(graph.count, NODES)
    yield improve(graph, devices, found[0].schedule.worker, fits, budget, orders)
    for number, each in enumerate(found):
        if number < SIMULATED or each.placer == "one-device":
            yield each.schedule
    workers = devices.workers // 2
    while workers > 1:
        yield portfolio(graph, devices.first(workers), tied, orders)[0].schedule
        workers //= 2
