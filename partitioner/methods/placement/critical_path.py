"""The critical path on one worker, everything else where least is to do.

Mayer, Mayer, Laich: *The TensorFlow Partitioning and Scheduling Problem: It's the Critical Path!* (DIDL
2017), without its simulation.
"""

from __future__ import annotations

import numpy as np

from ....support.integers import Integers
from ..pardnn.slicing import slices
from .graph import PlacementDevices, PlacementGraph
from .linear_clustering import least_loaded
from .one_device import by_speed


def critical_path(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node; the critical path has the fastest one."""
    cluster = slices(graph, devices, 1).cluster
    _, part = np.unique(np.where(cluster == 0, -1, graph.leader), return_inverse=True)
    return least_loaded(
        graph, devices, part, np.arange(part.max(initial=-1) + 1), int(by_speed(graph, devices)[0])
    )[part]
