"""A time that no placement goes below: the longest path, and the work over all devices."""

from __future__ import annotations

import numpy as np

from ....support.compiled import looped, zeros
from .graph import PlacementDevices, PlacementGraph
from .levels import fill_levels
from .wires import wires


def lower_bound(graph: PlacementGraph, devices: PlacementDevices) -> int:
    """Return the larger of both bounds, in nanoseconds."""
    return max(path_bound(graph, devices), work_bound(graph, devices))


def path_bound(graph: PlacementGraph, devices: PlacementDevices) -> int:
    """Return the length of the longest path, if messages are free and every node has its fastest device."""
    fastest = graph.nanoseconds[np.unique(devices.kind)].min(axis=0)
    count = graph.count
    bottom = zeros(count)
    fill_levels(wires(graph, devices), looped(fastest), zeros(count), zeros(count), zeros(count), bottom)
    return int(np.max(bottom, initial=0))


def work_bound(graph: PlacementGraph, devices: PlacementDevices) -> int:
    """Return the time that all devices need together, if every node can be split between them at will.

    Let a nanosecond of each kind of device have a price, and let the prices add up to 1 over all devices.
    Then the sum over nodes of the least price at which each can run is a bound. Here prices are speeds on the
    whole graph. The bound is the least time if one kind is faster than another by one factor on all nodes.
    """
    kinds, devices_of = np.unique(devices.kind, return_counts=True)
    times = graph.nanoseconds[kinds]
    if len(kinds) == 1:
        return int(-(-times.sum() // devices.workers))
    speeds = 1 / np.maximum(times.sum(axis=1), 1)
    prices = speeds / (speeds @ devices_of)
    return int((prices[:, None] * times).min(axis=0).sum() * (1 - 1e-12))
