"""Everything on one worker."""

from __future__ import annotations

import numpy as np

from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph


def by_speed(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the workers, the one that would run the whole graph in the least time first, ties by number."""
    return np.argsort(graph.nanoseconds.sum(axis=1)[devices.kind], kind="stable")


def one_device(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the fastest worker for every node."""
    return np.full(graph.count, by_speed(graph, devices)[0], np.int64)
