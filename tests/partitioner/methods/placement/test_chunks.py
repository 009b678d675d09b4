"""Chunks are contiguous, even, and keep together what stands together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.chunks import bundles, chunks_by_bytes, chunks_by_time

from .random_graphs import joined_devices, random_graph, training_like


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_chunks_are_contiguous_and_even(seed: int, workers: int) -> None:
    graph = random_graph(seed, 40)
    worker = chunks_by_time(graph, joined_devices(workers))
    assert (np.diff(worker) >= 0).all()
    loads = np.bincount(worker, graph.nanoseconds[0], workers)
    assert loads.max() - graph.nanoseconds.sum() / workers <= graph.nanoseconds.max()


def test_shares_are_speeds_and_memories() -> None:
    graph = random_graph(5, 400)
    two_kinds = replace(graph, nanoseconds=np.stack([graph.nanoseconds[0], 3 * graph.nanoseconds[0]]))
    by_time = chunks_by_time(two_kinds, joined_devices(2, kinds=2))
    loads = np.bincount(by_time, two_kinds.nanoseconds[by_time, np.arange(400)])
    assert abs(loads[0] / loads[1] - 1) < 0.05
    devices = replace(joined_devices(2), memory_bytes=np.array([1000, 4000]))
    stored = np.bincount(chunks_by_bytes(graph, devices), graph.stored_bytes)
    assert abs(4 * stored[0] / stored[1] - 1) < 0.05


@given(st.integers(0, 10_000))
def test_what_stands_together_shares_a_bundle(seed: int) -> None:
    graph = training_like(seed)
    tied = np.arange(graph.count)
    tied[12] = 5
    found = bundles(graph, tied)
    assert found[12] == found[5]
    assert np.array_equal(found, found[graph.leader])
    for tensor in range(graph.count // 5):
        if len(graph.readers[tensor]):
            first = min(min(graph.readers[v], default=graph.count) for v in graph.values[tensor])
            assert found[first] == found[tensor]
    assert np.array_equal(np.unique(found), np.arange(found.max() + 1))


def test_bundles_stand_at_their_first_operation() -> None:
    graph = random_graph(1, 6, density=0)
    assert bundles(graph, np.array([0, 1, 2, 2, 1, 0])).tolist() == [0, 1, 2, 2, 1, 0]
    tensor = replace(graph, nanoseconds=np.array([[0, 1, 1, 1, 1, 1]]))
    assert bundles(tensor, np.array([3, 1, 2, 3, 4, 5])).tolist() == [2, 0, 1, 2, 3, 4]
