"""Training in float32 stays within the error bound that follows from the descriptions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tofu import models
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import training_graph
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

from ..analyzer.rounding import propagate
from ..analyzer.running_error import Bounded

UNIT_ROUNDOFF = 2.0**-24


def perceptron() -> Graph:
    return models.get("mlp", batch=16, image=(1, 4, 4), hidden=(12,)).training_graph("sgd")


def residual() -> Graph:
    """One residual block with batch normalisation: worst cases multiply along the depth of a network."""
    with NameScope():
        data = sym.Variable("data")
        net = sym.Convolution(data, num_filter=8, kernel=(3, 3), pad=(1, 1), no_bias=True, name="conv1")
        net = sym.Activation(sym.BatchNorm(net, fix_gamma=False, name="bn"), act_type="relu", name="relu")
        net = sym.Convolution(net, num_filter=8, kernel=(3, 3), pad=(1, 1), no_bias=True, name="conv2") + data
        net = sym.Pooling(net, kernel=(1, 1), global_pool=True, pool_type="avg", name="pool")
        net = sym.FullyConnected(sym.Flatten(net, name="flat"), num_hidden=10, name="fc")
        net = sym.SoftmaxOutput(net, name="softmax")
    return training_graph(net, {"data": (8, 8, 4, 4), "softmax_label": (8,)}, "sgd")


def recurrent() -> Graph:
    options = {"layers": 1, "hidden": 8, "steps": 3, "embedding": 8, "vocabulary": 10}
    return models.get("lstm", batch=4, **options).training_graph("sgd")


GRAPHS = {"perceptron": perceptron, "residual": residual, "recurrent": recurrent}


@cache
def graph(name: str) -> Graph:
    return GRAPHS[name]()


@cache
def start(name: str) -> dict[str, Array]:
    generator = np.random.default_rng(7)
    values: dict[str, Array] = {}
    for tensor in graph(name).tensors:
        if not tensor.role.persistent or tensor.alias is not None:
            continue
        value = generator.standard_normal(tensor.shape) * 0.3
        if tensor.role is Role.SCALAR:
            value = np.full(tensor.shape, 0.125)
        elif "label" in tensor.name or (name == "recurrent" and tensor.name == "data"):
            value = generator.integers(0, 10, tensor.shape).astype(float)
        elif tensor.name.endswith("_var") or tensor.role is Role.STATE:
            value = np.abs(value)
        values[tensor.name] = value.astype(np.float32)
    return values


@cache
def bounds(name: str) -> dict[str, Bounded]:
    """Every tensor's exact value and error bound after one iteration, operation by operation."""
    values = start(name)
    known = {t.index: Bounded.exact(values[t.name]) for t in graph(name).tensors if t.name in values}
    for operation in graph(name).operations:
        names = operation.bound.description.tensor_names
        inputs = {parameter: known[index] for parameter, index in zip(names, operation.inputs, strict=True)}
        results = propagate(operation.bound, inputs, UNIT_ROUNDOFF)
        known.update(zip(operation.outputs, results, strict=True))
    return {tensor.name: known[tensor.index] for tensor in graph(name).tensors}


@cache
def trained(name: str, workers: int) -> dict[str, Array]:
    """Updated parameters, states and outputs after one iteration in float32."""
    with Executor(lower(graph(name), partition(graph(name), workers=workers))) as executor:
        for tensor, value in start(name).items():
            executor.write(tensor, value)
        executor.run()
        read = [t for t in graph(name).tensors if t.alias is not None]
        read += [graph(name).tensors[index] for index in graph(name).outputs]
        return {tensor.name: executor.read(tensor.name) for tensor in read}


@pytest.mark.parametrize("workers", range(1, 9))
@pytest.mark.parametrize("name", GRAPHS)
def test_within_the_bound(name: str, workers: int) -> None:
    for tensor, value in trained(name, workers).items():
        bounded = bounds(name)[tensor]
        assert (np.abs(value - bounded.value) <= bounded.error).all(), tensor
        assert (np.abs(value - trained(name, 1)[tensor]) <= 2 * bounded.error).all(), tensor


@pytest.mark.parametrize("name", GRAPHS)
def test_the_bound_says_something(name: str) -> None:
    """It is small compared with the values it is about; a wrong sign or a lost term would leave it."""
    for tensor in trained(name, 1):
        bounded = bounds(name)[tensor]
        assert np.median(bounded.error) < 1e-2 * np.abs(bounded.value).max(), tensor
