"""No placement ends before the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.bound import lower_bound, path_bound, work_bound
from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.support.integer_lists import IntegerLists

from .every_placement import least_time, small_case
from .random_graphs import joined_devices, random_graph, training_like


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3))
def test_no_placer_ends_before_the_bound(seed: int, workers: int, kinds: int) -> None:
    graph = training_like(seed, kinds=kinds)
    devices = replace(joined_devices(workers), kind=np.arange(workers) % kinds)
    assert portfolio(graph, devices)[0].schedule.nanoseconds >= lower_bound(graph, devices)


def test_no_placement_ends_before_the_bound() -> None:
    graph, devices = small_case(3, 0.1)
    assert least_time(graph, devices, 0) >= lower_bound(graph, devices)


def test_the_bound_is_reached_by_chains_and_by_equal_nodes() -> None:
    chain = replace(random_graph(1, 5), readers=IntegerLists.of([[1], [2], [3], [4], []]))
    assert path_bound(chain, joined_devices(3)) == chain.nanoseconds.sum()
    devices = joined_devices(3)
    alone = replace(random_graph(1, 6, density=0), nanoseconds=np.full((1, 6), 7))
    assert work_bound(alone, devices) == 14
    assert portfolio(alone, devices)[0].schedule.nanoseconds == 14


def test_slower_kinds_take_their_share() -> None:
    graph = random_graph(1, 6, density=0)
    uniform = replace(graph, nanoseconds=np.array([[300] * 6, [600] * 6]))
    assert work_bound(uniform, replace(joined_devices(3), kind=np.array([0, 1, 1]))) in (899, 900)
    assert path_bound(uniform, joined_devices(2, kinds=2)) == 300
    assert path_bound(uniform, replace(joined_devices(2), kind=np.array([1, 1]))) == 600
