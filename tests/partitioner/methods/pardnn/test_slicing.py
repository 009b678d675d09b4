"""Clusters are disjoint paths that cover the graph; primaries are longest paths of what is left."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.pardnn.slicing import Slices, slices
from tofu.partitioner.methods.placement.graph import PlacementGraph
from tofu.support.integer_lists import IntegerLists

from ..placement.random_graphs import joined_devices, random_graph, training_like


def paths(found: Slices) -> list[list[int]]:
    """Return the path of each cluster."""
    return [np.flatnonzero((found.cluster == each) & found.on_path).tolist() for each in range(found.count)]


def lengths(graph: PlacementGraph, message: float) -> networkx.DiGraph:
    """Return edges that take the time of their first node and a message."""
    edges = networkx.DiGraph()
    edges.add_nodes_from([*range(graph.count), -1])
    time = graph.nanoseconds[0]
    for maker, reader in zip(graph.maker[graph.readers.row_of_entries], graph.readers.entries, strict=True):
        length = time[maker] + round(message + float(graph.sent_bytes[maker]))
        edges.add_edge(int(maker), int(reader), length=length)
    edges.add_edges_from((node, -1, {"length": time[node]}) for node in range(graph.count))
    return edges


@given(st.integers(0, 10_000), st.integers(0, 5))
def test_clusters_are_disjoint_paths_that_cover_the_graph(seed: int, primaries: int) -> None:
    graph = random_graph(seed, 20, 0.15)
    found = slices(graph, joined_devices(3), primaries)
    edges = set(map(tuple, graph.edges.tolist()))
    assert found.on_path.all()
    assert found.primaries <= primaries
    assert all(paths(found))
    for path in paths(found):
        assert all(pair in edges for pair in pairwise(path))


@given(st.integers(0, 10_000), st.integers(0, 5))
def test_leaders_and_followers_share_a_cluster(seed: int, primaries: int) -> None:
    graph = training_like(seed)
    found = slices(graph, joined_devices(3), primaries)
    edges = set(map(tuple, graph.edges.tolist()))
    assert np.array_equal(found.cluster, found.cluster[graph.leader])
    for path in paths(found):
        assert path
        assert all(pair in edges for pair in pairwise(path))
    bundles = {(int(graph.leader[node])) for node in np.flatnonzero(found.on_path)}
    assert bundles == set(graph.leader.tolist())


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_primaries_are_longest_paths_of_what_is_left(seed: int, primaries: int) -> None:
    graph, devices = random_graph(seed, 20, 0.2), joined_devices(3)
    found = slices(graph, devices, primaries)
    edges = lengths(graph, devices.mean_latency)
    for path in paths(found)[: found.primaries]:
        length = networkx.path_weight(edges, [*path, -1], "length")
        assert length == networkx.dag_longest_path_length(edges, "length")
        edges.remove_nodes_from(path)


def test_a_chain_has_one_primary() -> None:
    graph = random_graph(2, 5, density=0)
    chain = replace(graph, readers=IntegerLists.of([[1], [2], [3], [4], []]))
    found = slices(chain, joined_devices(3), 3)
    assert (found.primaries, found.count) == (1, 1)
    assert found.cluster.tolist() == [0] * 5
