"""The placements from which the best one that fits is chosen, and a bound on all."""

from __future__ import annotations

import numpy as np

from .graph import Devices, PlacementGraph, Schedule


def candidates(graph: PlacementGraph, devices: Devices) -> list[Schedule]:
    """Return one device, and contiguous chunks of equal time, in the order of the graph."""
    order = np.arange(graph.count)
    until = graph.nanoseconds.mean(axis=0).cumsum()
    chunk = (until * devices.workers / (until[-1] + 1)).astype(np.int64)[graph.leader]
    return [Schedule(worker, order, 0) for worker in (np.zeros_like(chunk), chunk)]


def least_nanoseconds(graph: PlacementGraph, devices: Devices) -> int:
    """Return a time that no placement beats: that of the longest path, or an even share of all work."""
    fastest: list[int] = graph.nanoseconds[np.unique(devices.kind)].min(axis=0).tolist()
    ends = list(fastest)
    for before, after in graph.edges[np.argsort(graph.edges[:, 1], kind="stable")].tolist():
        ends[after] = max(ends[after], ends[before] + fastest[after])
    return max(max(ends), -(-sum(fastest) // devices.workers))
