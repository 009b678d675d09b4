"""ParDNN's first step: slicing, mapping and balancing (section 3.1; its second step is memory, section 3.2).

The paper maps maximally communicating clusters by locality if communication is at least 10 times
computation. Its published code asks for more, so that fewer models of its table 5 qualify. Here both ways are
tried, unless a threshold is given, and the placement that ends first is kept.
"""

from __future__ import annotations

import numpy as np

from ....support.integers import Integers
from ..placement.graph import PlacementDevices, PlacementGraph
from ..placement.priorities import emulated
from ..placement.wires import mean_messages, mean_nanoseconds, wires
from .balancing import balance
from .clusters import board, clusters
from .mapping import by_criticality, map_near
from .slicing import Slices, slices


def place(graph: PlacementGraph, devices: PlacementDevices, threshold: float | None = None) -> Integers:
    """Return the worker of every node.

    `threshold` is the ratio of communication to computation from which on maximally communicating clusters
    are mapped by locality; without it both ways are tried.
    """
    found = slices(graph, devices, devices.workers)
    ways = (False, True) if threshold is None else (communication_ratio(graph, devices) >= threshold,)
    placed = [place_slices(graph, devices, found, maximal) for maximal in ways]
    if all(np.array_equal(placed[0], each) for each in placed):
        return placed[0]
    return min(placed, key=lambda worker: emulated(graph, devices, worker)[1].nanoseconds)


def place_slices(graph: PlacementGraph, devices: PlacementDevices, found: Slices, maximal: bool) -> Integers:
    """Return the worker of every node of a sliced graph; map maximally communicating clusters if asked to."""
    net, known = wires(graph, devices), clusters(graph, devices, found)
    state = board(graph, devices, found, known)
    order = by_criticality(known, found.primaries)
    map_near(net, known, state, order, maximal)
    balance(net, known, state, order)
    return np.asarray(state.worker, np.int64)[found.cluster]


def communication_ratio(graph: PlacementGraph, devices: PlacementDevices) -> float:
    """Return the time of all messages, each value being sent once, over that of all nodes.

    The paper sends a value once for each reader. A graph without computation has the ratio 0.
    """
    others = (
        np.asarray(graph.leader[graph.maker[graph.readers.row_of_entries]])
        != graph.leader[graph.readers.entries]
    )
    sent = np.unique(graph.readers.row_of_entries[others])
    return float(mean_messages(graph, devices)[sent].sum() / max(mean_nanoseconds(graph, devices).sum(), 1))
