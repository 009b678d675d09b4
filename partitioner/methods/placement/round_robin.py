"""Nodes on workers by turns."""

from __future__ import annotations

import numpy as np

from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph


def round_robin(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node: leaders take turns in the graph's order."""
    leads = graph.leader == np.arange(graph.count)
    return ((np.cumsum(leads) - 1) % devices.workers)[graph.leader]
