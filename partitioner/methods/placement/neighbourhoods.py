"""Neighbouring workers that share nodes, as places of their own.

The workers of a neighbourhood hold a part each of what a shared node makes, from its tick to the last tick at
which any worker takes it from there. Of every other value that a shared node reads, each fetches its part for
the tick of that node. The home of that value keeps it until then.

For placements a neighbourhood is one more place, after all workers. Its nodes do not move.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph


def with_neighbourhoods(graph: PlacementGraph, workers: int, worker: Integers) -> Integers:
    """Return the place of each node: its worker, or the neighbourhood of that one if the node is shared."""
    return np.where(graph.shared, workers + worker // graph.parts, worker)


def with_places(graph: PlacementGraph, devices: PlacementDevices) -> PlacementDevices:
    """Return devices with a further one for each neighbourhood, linked as the first worker of it is."""
    if not len(graph.shared_nodes):
        return devices
    workers = devices.workers
    like = np.concatenate([np.arange(workers), np.arange(0, workers, graph.parts)])
    between = np.ix_(like, like)
    return replace(
        devices,
        kind=devices.kind[like],
        latency=devices.latency[between],
        per_byte=devices.per_byte[between],
    )


def members(graph: PlacementGraph, workers: int, place: Integers) -> tuple[Integers, Integers]:
    """Return the workers of neighbourhoods, and for each the place among those that are given."""
    count = np.arange(len(place)).repeat(graph.parts)
    first = (place - workers) * graph.parts
    return first.repeat(graph.parts) + np.tile(np.arange(graph.parts), len(place)), count


def part_bytes(graph: PlacementGraph, nbytes: Integers) -> Integers:
    """Return the bytes of the largest part."""
    return -(-nbytes // graph.parts)
