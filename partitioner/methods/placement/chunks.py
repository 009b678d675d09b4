"""Contiguous chunks of the graph's order, one for each worker.

Some nodes have no place of their own in the order: a tensor stands with its first reader, a node with its
leader, and a *tied* one with the node that the caller names, such as a backward operation with its forward
one. All that stand together form a *bundle*, whose place is that of its first node that is not a tensor.
A worker's share of the whole is its speed, or its memory. A bundle belongs to the chunk in which its middle
lies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph
from .wires import mean_nanoseconds

_Amounts = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def chunks_by_time(
    graph: PlacementGraph, devices: PlacementDevices, tied: Integers | None = None
) -> Integers:
    """Return the worker of every node, so that workers compute equally long.

    `tied` gives for each node the one that it stands with, or its own number.
    """
    return spread_by_time(graph, devices, bundles(graph, tied))


def chunks_by_bytes(
    graph: PlacementGraph, devices: PlacementDevices, tied: Integers | None = None
) -> Integers:
    """Return the worker of every node, so that what workers make and hold fills their memory equally."""
    stored = np.bincount(graph.maker, graph.stored_bytes, graph.count)
    shares = np.ones(devices.workers) if devices.memory_bytes is None else devices.memory_bytes
    return _spread(bundles(graph, tied), stored, shares)


def spread_by_time(graph: PlacementGraph, devices: PlacementDevices, bundle: Integers) -> Integers:
    """Return the worker of every node. Workers take equal times of bundles, in the order of their numbers."""
    totals = graph.nanoseconds.sum(axis=1)[devices.kind]
    return _spread(bundle, mean_nanoseconds(graph, devices), 1 / np.maximum(totals, 1))


def _spread(bundle: Integers, weights: _Amounts, shares: _Amounts) -> Integers:
    """Return the worker of every node; the weights of nodes are spread over workers by shares."""
    heavy = np.bincount(bundle, weights)
    ends = np.cumsum(heavy)
    middles = (ends - heavy / 2) / max(heavy.sum(), 1)
    parts = np.cumsum(shares) / np.sum(shares)
    found: Integers = np.searchsorted(parts[:-1], middles, side="right")
    return found[bundle]


def bundles(graph: PlacementGraph, tied: Integers | None = None) -> Integers:
    """Return the number of each node's bundle; bundles are numbered by their places in the graph's order."""
    number = np.arange(graph.count)
    source = sources(graph)
    joins = [graph.leader, number if tied is None else tied, np.where(source, _first_readers(graph), number)]
    pairs = np.tile(number, len(joins)), np.concatenate(joins)
    joined = coo_array((np.ones(len(pairs[0]), np.int8), pairs), (graph.count, graph.count))
    return by_first(connected_components(joined, directed=False)[1], source)


def by_first(bundle: Integers, source: npt.NDArray[np.bool_]) -> Integers:
    """Number bundles in the order of their first nodes that are not tensors; those of tensors come last."""
    count = int(bundle.max(initial=-1)) + 1
    number = np.arange(len(bundle))
    place, lone = np.full((2, count), len(bundle))
    np.minimum.at(place, bundle[~source], number[~source])
    np.minimum.at(lone, bundle, number)
    rank: Integers = np.empty(count, np.int64)
    rank[np.lexsort([lone, place])] = np.arange(count)
    return np.asarray(rank[bundle])


def sources(graph: PlacementGraph) -> npt.NDArray[np.bool_]:
    """Return whether each node takes no time and reads nothing, as tensors do."""
    reads = np.diff(graph.inputs.firsts)
    return np.asarray((graph.nanoseconds == 0).all(axis=0) & (reads == 0))


def _first_readers(graph: PlacementGraph) -> Integers:
    """Return for each node the first that reads one of its values; its own number if there is none."""
    found = np.full(graph.count, graph.count)
    np.minimum.at(found, graph.maker[graph.readers.row_of_entries], graph.readers.entries)
    return np.where(found < graph.count, found, np.arange(graph.count))
