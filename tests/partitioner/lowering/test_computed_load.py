"""The computations of every worker, counted from its boxes."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner.lowering.computed_load import UNEVEN, ComputedLoad, computed_load


def _graph(hidden: int) -> tofu.dataflow.graph.Graph:
    net = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=hidden, no_bias=True, name="fc")
    return tofu.inference_graph(net, {"data": (1, 10)})


def test_a_worker_with_more_rows_computes_more() -> None:
    """Three rows over two workers are one and two; a row of ten products and sums is 20 operations."""
    graph = _graph(3)
    found = computed_load(graph, tofu.partition(graph, 2, constraints=["pin fc=h"]))
    assert sorted(found.flops) == [20, 40]
    assert found.flops[found.busiest] == 40
    assert found.ratio == pytest.approx(4 / 3)


def test_all_workers_together_compute_what_one_does() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph("sgd")
    alone = computed_load(graph, tofu.partition(graph, 1))
    shared = computed_load(graph, tofu.partition(graph, 4))
    assert alone.ratio == 1
    assert sum(shared.flops) >= sum(alone.flops) > 4 * 100_000
    assert shared.ratio < UNEVEN


def test_nothing_to_compute_is_even() -> None:
    assert ComputedLoad((0, 0)).ratio == 1
