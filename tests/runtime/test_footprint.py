"""The memory of a graph, told without running it, is what an executor takes."""

from __future__ import annotations

import pytest

import tofu
from tofu.dataflow import sym
from tofu.runtime.executor import Executor
from tofu.runtime.footprint import Footprint, footprint


@pytest.mark.parametrize("workers", [1, 3])
def test_it_is_the_memory_of_an_executor(workers: int) -> None:
    with sym.NameScope():
        net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=6), name="softmax")
    graph = tofu.training_graph(net, {"data": (12, 9), "softmax_label": (12,)})
    partitioned = tofu.lower(graph, tofu.partition(graph, workers))
    found = footprint(partitioned)
    with Executor(partitioned) as executor:
        held = tuple(map(sum, zip(found.arena_bytes, found.workspace_bytes, strict=True)))
        assert held == executor.held_bytes
        assert found.arena_bytes == executor.memory.arena_bytes
        assert found.peak_bytes == max(held)


def test_the_peak_is_that_of_one_worker() -> None:
    assert Footprint((10, 20, 5), (7, 0, 14)).peak_bytes == 20
    assert Footprint((), ()).peak_bytes == 0
