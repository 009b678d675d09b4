"""The strategies of experts, found from descriptions and ties."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

import tofu
from tofu.dataflow.graph import Role
from tofu.errors import PlanError
from tofu.partitioner.methods.flexflow.data_parallel import data_parallel
from tofu.partitioner.methods.flexflow.experts import candidates
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.wu_2016 import recurrent_layers
from tofu.partitioner.plans.space import Space

from .small_graphs import OPTIONS, graph_of


def parameter_bytes(graph: Any) -> int:
    return sum(4 * prod(t.shape) for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None)


@pytest.mark.parametrize("model", ["mlp", "lenet"])
def test_data_parallelism_moves_an_all_reduce_of_every_gradient(model: str) -> None:
    graph = graph_of(model)
    strategies = Strategies(find_soap(graph, 4), Space(feed="batch"))
    assert strategies.plan(data_parallel(strategies)).cost_bytes == 2 * 3 * parameter_bytes(graph)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_one_weird_trick_splits_samples_of_convolutions_and_weights_of_dense_layers(dtype: str) -> None:
    """Layers that compute in 16 bits read copies of the weights."""
    graph = tofu.models.get("lenet", **OPTIONS["lenet"]).training_graph(dtype=dtype)
    plan = tofu.partition(graph, 4, method="one-weird-trick")
    tofu.verify(graph, plan)
    assert plan.method == "one-weird-trick"
    assert str(plan.strategies["conv1"].degrees) == "(('n', 4),)"
    assert str(plan.strategies["fc1.product"].degrees) == "(('h', 4),)"
    assert len({str(part.region) for part in plan.of(graph).versions["fc1_weight"][0].holdings}) == 4
    assert len({str(part.region) for part in plan.of(graph).versions["conv1_weight"][0].holdings}) == 1
    assert plan.cost_bytes < tofu.partition(graph, 4, method="data-parallel").cost_bytes


@pytest.mark.parametrize(
    ("method", "model", "message"),
    [
        ("one-weird-trick", "mlp", "'mlp' has nothing like a convolution"),
        ("wu-2016", "lenet", "puts recurrent layers on workers of a group, but 'lenet' has none; choose"),
    ],
)
def test_experts_refuse_what_they_do_not_know(method: str, model: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        tofu.partition(graph_of(model), 4, method=method)


def test_wu_puts_layers_on_workers_of_each_group() -> None:
    graph = graph_of("lstm")
    plan = tofu.partition(graph, 4, method="wu-2016")
    tofu.verify(graph, plan)
    for operation in graph.operations:
        workers = {task.worker % 2 for task in plan.of(graph).tasks[operation.name]}
        for layer in (0, 1):
            if f"lstm_l{layer}_" in operation.name:
                assert workers == {layer}, operation.name
    assert len(plan.of(graph).tasks["lstm_l0_t1_gates"]) == 2


def test_layers_are_the_cells_that_feed_themselves() -> None:
    graph = tofu.models.get("lstm", layers=3, steps=4, batch=4, hidden=8).training_graph()
    layers, count = recurrent_layers(graph)
    assert count == 3
    for operation, layer in zip(graph.operations, layers, strict=True):
        for number in range(3):
            if f"lstm_l{number}_" in operation.name:
                assert layer == number, operation.name


def test_states_that_pass_from_one_part_of_a_batch_to_the_next_are_not_recurrent() -> None:
    """A dropout reads its seed, which the update of the part before has made."""
    model = tofu.models.get("transformer-encoder-1-16", batch=4, steps=6, vocabulary=20)
    graph = model.training_graph(accumulate=2, unroll=True)
    _, count = recurrent_layers(graph)
    assert count == 0


def test_searches_start_from_the_experts_that_know_the_graph() -> None:
    names = {
        model: set(dict(candidates(Strategies(find_soap(graph_of(model), 4), Space(feed="batch")))))
        for model in ("mlp", "lenet", "lstm")
    }
    assert names["mlp"] == {"data-parallel"}
    assert names["lenet"] == {"data-parallel", "one-weird-trick"}
    assert "wu-2016" in names["lstm"]
