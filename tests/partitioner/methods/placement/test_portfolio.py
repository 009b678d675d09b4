"""The best placement of the portfolio is as good as every placer's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.emulate import emulate
from tofu.partitioner.methods.placement.placers import placers
from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.partitioner.methods.placement.priorities import priorities
from tofu.partitioner.methods.placement.refine import improve

from .random_graphs import joined_devices, random_graph, training_like


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_best_is_in_front(seed: int, workers: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    found = portfolio(graph, devices)
    assert sorted(each.placer for each in found) == sorted(placers())
    for each in found:
        worker = placers()[each.placer](graph, devices)
        times = {
            name: emulate(graph, devices, worker, priority).nanoseconds
            for name, priority in priorities(graph, devices, worker).items()
        }
        assert each.schedule.nanoseconds == times[each.priority] == min(times.values())
    ends = [each.schedule.nanoseconds for each in found]
    assert ends == sorted(ends)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [0, 1])
def test_graphs_may_be_empty_or_have_one_node(count: int, workers: int) -> None:
    graph, devices = random_graph(1, count), joined_devices(workers)
    found = portfolio(graph, devices)[0].schedule
    assert found.nanoseconds == graph.nanoseconds.sum()
    assert improve(graph, devices, found.worker, lambda _: True, 20).nanoseconds == found.nanoseconds
