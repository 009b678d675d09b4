"""Levels are lengths of longest paths."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.levels import levels
from tofu.support.integers import Integers

from .random_graphs import joined_devices, random_graph, training_like


def weighted(graph: PlacementGraph, devices: PlacementDevices, sets: Integers) -> networkx.DiGraph:
    """Return all edges with the longest time from the start of one end to that of the other."""
    found = networkx.DiGraph()
    found.add_nodes_from(range(graph.count))
    time = graph.nanoseconds[0]

    def join(first: int, second: int, message: float) -> None:
        known = found.get_edge_data(first, second, {"length": 0})["length"]
        found.add_edge(first, second, length=max(known, time[first] + message))

    for value, maker in enumerate(graph.maker.tolist()):
        for reader in graph.readers[value].tolist():
            message = round(devices.mean_latency + devices.mean_per_byte * graph.sent_bytes[value])
            join(maker, reader, 0 if sets[maker] == sets[reader] else message)
    for node in range(graph.count):
        for other in graph.after[node].tolist():
            join(node, other, 0)
    return found


@given(st.integers(0, 10_000), st.booleans())
def test_levels_are_the_longest_paths_of_networkx(seed: int, by_sets: bool) -> None:
    graph, devices = training_like(seed, 15), joined_devices(3)
    sets = np.random.default_rng(seed).integers(0, 4, graph.count) if by_sets else graph.leader
    found = levels(graph, devices, sets if by_sets else None)
    edges = weighted(graph, devices, sets)
    time = graph.nanoseconds[0]
    for node in range(graph.count):
        before = edges.subgraph(networkx.ancestors(edges, node) | {node})
        assert found.top[node] == networkx.dag_longest_path_length(before, "length")
        after = edges.subgraph(networkx.descendants(edges, node) | {node})
        ends = networkx.DiGraph(after)
        ends.add_edges_from((last, -1, {"length": time[last]}) for last in after)
        assert found.bottom[node] == networkx.dag_longest_path_length(ends, "length")


@pytest.mark.parametrize("workers", [1, 4])
def test_one_worker_sends_no_messages(workers: int) -> None:
    graph = random_graph(3)
    apart = levels(graph, joined_devices(workers)).bottom.max()
    together = levels(graph, joined_devices(workers), np.zeros(graph.count, np.int64)).bottom.max()
    assert (apart == together) == (workers == 1)
