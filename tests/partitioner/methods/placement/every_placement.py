"""The least emulated time over all placements of small graphs on two equal workers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tofu.partitioner.methods.placement.emulate import emulate
from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.priorities import priorities
from tofu.support.integers import Integers

from .random_graphs import joined_devices, random_graph


def small_case(seed: int, ratio: float) -> tuple[PlacementGraph, PlacementDevices]:
    """Return a graph of 10 nodes, and two workers; messages take `ratio` times as long as all nodes."""
    graph = random_graph(seed)
    sent = graph.sent_bytes[np.diff(graph.readers.firsts) > 0].sum()
    return graph, joined_devices(2, 0, ratio * graph.nanoseconds.sum() / max(sent, 1))


def every_placement(count: int) -> Iterator[Integers]:
    """Yield all placements of nodes on two equal workers, of which the first node has the first."""
    for others in product(range(2), repeat=count - 1):
        yield np.array([0, *others])


def least_time(graph: PlacementGraph, devices: PlacementDevices, orders: int) -> int:
    """Return the least time over all placements, each in the orders of all priorities and in random ones."""
    draw = np.random.default_rng(0)
    drawn = [draw.permutation(graph.count) for _ in range(orders)]
    return min(
        emulate(graph, devices, worker, priority).nanoseconds
        for worker in every_placement(graph.count)
        for priority in [*priorities(graph, devices, worker).values(), *drawn]
    )
