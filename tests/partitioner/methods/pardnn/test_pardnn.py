"""ParDNN keeps the better one of two ways, and the threshold chooses one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.pardnn.pardnn import communication_ratio, place, place_slices
from tofu.partitioner.methods.pardnn.slicing import slices
from tofu.partitioner.methods.placement.priorities import emulated
from tofu.support.integer_lists import IntegerLists

from ..placement.random_graphs import joined_devices, random_graph, training_like


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_better_way_is_kept(seed: int, workers: int) -> None:
    graph, devices = training_like(seed, 30), joined_devices(workers)
    found = slices(graph, devices, workers)
    ways = [place_slices(graph, devices, found, maximal) for maximal in (False, True)]
    ends = [emulated(graph, devices, worker)[1].nanoseconds for worker in ways]
    chosen = place(graph, devices)
    assert emulated(graph, devices, chosen)[1].nanoseconds == min(ends)
    ratio = communication_ratio(graph, devices)
    assert np.array_equal(place(graph, devices, ratio), ways[1])
    assert np.array_equal(place(graph, devices, ratio + 1), ways[0])


def test_a_value_counts_once_whatever_its_readers() -> None:
    graph = replace(
        random_graph(0, 3),
        nanoseconds=np.array([[10, 20, 30]]),
        sent_bytes=np.array([50, 60, 70]),
        readers=IntegerLists.of([[1, 2], [], []]),
    )
    assert communication_ratio(graph, joined_devices(2, 10)) == 1
    assert communication_ratio(graph, joined_devices(1, 10)) == 0
    assert communication_ratio(replace(graph, leader=np.zeros(3, np.int64)), joined_devices(2, 10)) == 0


def test_a_chain_stays_on_one_worker() -> None:
    chain = replace(random_graph(2, 6), readers=IntegerLists.of([[1], [2], [3], [4], [5], []]))
    assert len(set(place(chain, joined_devices(3)).tolist())) == 1


def test_two_chains_have_two_workers() -> None:
    chains = replace(random_graph(2, 6), readers=IntegerLists.of([[2], [3], [4], [5], [], []]))
    worker = place(chains, joined_devices(2))
    assert worker[0] != worker[1]
    assert worker.tolist() == worker[:2].tolist() * 3
