"""Graphs of all micro-batches: what is copied, in which order, and what is shared."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Phase, Role
from tofu.dataflow.micro_batches import unrolled
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import training_graph
from tofu.dataflow.validate import validate

SHAPES = {"data": (2, 6), "label": (2, 4)}


def network() -> Symbol:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=5, name="fc1")
        net = sym.BatchNorm(net, name="bn", fix_gamma=False)
        net = sym.Dropout(sym.Activation(net, act_type="relu", name="relu"), p=0.5, name="drop")
        net = sym.FullyConnected(net, num_hidden=4, name="fc2")
        return sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")


def copies(count: int, **settings: Any) -> Graph:
    return training_graph(network(), SHAPES, "sgd", micro_batches=count, unroll=True, **settings)


@given(st.integers(2, 5), st.sampled_from(["float32", "bfloat16"]), st.integers(1, 3))
def test_every_operation_on_samples_is_there_once_for_each(count: int, dtype: str, recompute: int) -> None:
    settings: dict[str, Any] = {"dtype": dtype, "recompute": recompute}
    base = training_graph(network(), SHAPES, "sgd", micro_batches=count, **settings)
    graph = unrolled(base, count)
    validate(graph)
    named = {operation.name: operation for operation in graph.operations}
    for operation in base.operations:
        alias = base.tensors[operation.outputs[0]].alias
        if alias is not None and base.tensors[alias].role is Role.ACCUMULATOR:
            assert {f"{operation.name}@{k}" in named for k in range(1, count)} == {True}
            assert f"{operation.name}@0" not in named
        elif operation.name not in named:
            found = [named[f"{operation.name}@{k}"] for k in range(count)]
            assert {each.bound for each in found} == {operation.bound}
            assert [each.micro_batch for each in found] == list(range(count))
            assert len({each.tie for each in found} - {None}) == 1
    shared = [each for each in graph.operations if each.micro_batch is None]
    assert all(each.phase is Phase.UPDATE or dtype == "bfloat16" for each in shared)
    assert not any(tensor.role is Role.ACCUMULATOR for tensor in graph.tensors)


def test_operations_are_in_the_order_of_micro_batches() -> None:
    numbers = [each.micro_batch for each in copies(3).operations if each.micro_batch is not None]
    assert numbers == sorted(numbers)


def test_data_and_outputs_are_those_of_each_micro_batch() -> None:
    graph = copies(3)
    data = [tensor.name for tensor in graph.tensors if tensor.role is Role.DATA]
    assert sorted(data) == sorted(f"{name}@{k}" for name in SHAPES for k in range(3))
    assert [graph.tensors[index].name for index in graph.outputs] == [f"out_output@{k}" for k in range(3)]


def test_state_passes_from_one_micro_batch_to_the_next() -> None:
    graph = copies(3)
    named = {operation.name: operation for operation in graph.operations}
    for state in ("bn_moving_mean", "drop.seed"):
        chain = [named[f"update({state})@{k}"] for k in range(3)]
        tensors = {tensor.name: tensor.index for tensor in graph.tensors}
        assert [tensors[state] in each.inputs for each in chain] == [True, False, False]
        assert all(before.outputs[0] in after.inputs for before, after in pairwise(chain))
        assert [graph.tensors[each.outputs[0]].alias for each in chain] == [None, None, tensors[state]]


def test_one_micro_batch_is_the_graph_as_it_is() -> None:
    graph = training_graph(network(), SHAPES)
    assert unrolled(graph, 1) is graph
    assert copies(1).fingerprint == graph.fingerprint


def test_gradients_are_summed_in_order() -> None:
    graph = copies(3)
    named = {operation.name: operation for operation in graph.operations}
    names = [
        [graph.tensors[i].name for i in named[f"accumulate(grad(fc1_weight))@{k}"].inputs] for k in (1, 2)
    ]
    assert names == [
        ["grad(fc1_weight)@0", "grad(fc1_weight)@1"],
        ["total(grad(fc1_weight))@1", "grad(fc1_weight)@2"],
    ]
    assert "total(grad(fc1_weight))@2" in {graph.tensors[i].name for i in named["update(fc1_weight)"].inputs}


@pytest.mark.slow
def test_copies_cost_the_same_each() -> None:
    """Time grows with the copies alone: sixteen times as many take less than forty times as long."""
    base = training_graph(network(), SHAPES, micro_batches=2)
    seconds = []
    for count in (500, 8000):
        begun = time.process_time()
        unrolled(base, count)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 40 * seconds[0]
