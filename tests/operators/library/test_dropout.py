"""Dropout: the same numbers wherever they are drawn, and as many zeros as asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tofu
from tofu.analyzer.indices.region import to_region
from tofu.dataflow.graph import Role
from tofu.dataflow.training import training_graph
from tofu.errors import OperatorError, ShapeError
from tofu.operators import get
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.library.dropout import position
from tofu.runtime.executor import Executor

RNG = np.random.default_rng(19)


def dropped(data: np.ndarray, seed: int, p: float = 0.5) -> np.ndarray:
    bound = get("Dropout").bind({"data": data.shape, "seed": (1,)}, p=p)
    (result,) = bound.compute({"data": data, "seed": np.array([seed], data.dtype)})
    return result


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_scale(p: float) -> None:
    result = dropped(np.ones((200, 500), np.float32), 3, p)
    assert set(np.unique(result)) == {0, np.float32(1 / (1 - p))}
    assert abs((result == 0).mean() - p) < 0.01
    assert np.abs((result == 0).mean(0) - p).max() < 0.2
    assert np.abs((result == 0).mean(1) - p).max() < 0.12


def test_seeds_and_types() -> None:
    data = np.ones((30, 40))
    np.testing.assert_array_equal(dropped(data, 7), dropped(data, 7))
    assert 0.4 < (dropped(data, 7) == dropped(data, 8)).mean() < 0.6
    np.testing.assert_array_equal(dropped(data.astype(np.float32), 7), dropped(data, 7))


def test_every_part_draws_what_the_whole_draws() -> None:
    data = RNG.normal(size=(6, 4, 5))
    bound = get("Dropout").bind({"data": data.shape, "seed": (1,)})
    whole = dropped(data, 11)
    for strategy in bound.strategies:
        for box in bound.split([strategy.variable], [3]):
            (region,) = (to_region(boxes[0]) for boxes in bound.output_regions(box[None]))
            part = tuple(slice(*interval) for interval in region)
            output = np.empty(whole[part].shape)
            inputs = {"data": data[part], "seed": np.array([11.0])}
            regions = {"data": region, "seed": ((0, 1),)}
            ranges = dict(zip(bound.variables, to_region(box), strict=True))
            bound.prepare(KernelCall(bound, ranges, inputs, regions, (output,)))()
            np.testing.assert_array_equal(output, whole[part])


def test_the_gradient_drops_the_same_elements(gradients: Callable[..., dict]) -> None:
    tensors = {"data": np.ones((20, 30)), "seed": np.array([5.0])}
    found = gradients(get("Dropout"), {"p": 0.3}, tensors, (np.ones((20, 30)),))
    np.testing.assert_array_equal(found["data"], dropped(tensors["data"], 5, 0.3))
    assert set(found) == {"data"}


def test_everything_passes_in_inference_and_with_p_of_zero() -> None:
    data = RNG.normal(size=(2, 3))
    for bound in (
        get("Dropout").bind({"data": (2, 3)}, training=False),
        get("Dropout").bind({"data": (2, 3)}, p=0),
    ):
        np.testing.assert_array_equal(bound.compute({"data": data})[0], data)
    with pytest.raises(OperatorError, match=r"p=1 is not a probability"):
        get("Dropout").bind({"data": (2, 3)}, p=1)


def test_large_tensors_have_large_counters() -> None:
    assert position((3, 5)) == ("0", "i0 * 5 + i1")
    assert position((1 << 20, 1 << 5, 1 << 6)) == ("i0", f"i1 * {1 << 6} + i2")
    with pytest.raises(
        ShapeError, match=r"tensor of shape \(33554432, 33554432\) is too large for random numbers"
    ):
        position((1 << 25, 1 << 25))


def dropout_network() -> tofu.Symbol:
    data = tofu.sym.Variable("data")
    net = tofu.sym.Dropout(tofu.sym.Dropout(data, p=0.5, name="first"), p=0.25, name="second")
    return tofu.sym.LinearRegressionOutput(
        tofu.sym.FullyConnected(net, num_hidden=6, name="fc"), tofu.sym.Variable("label"), name="fit"
    )


def test_seeds_are_hidden_states_that_count_iterations() -> None:
    net = dropout_network()
    assert net.list_auxiliary_states() == []
    graph = training_graph(net, {"data": (8, 12), "label": (8, 6)}, "sgd")
    seeds = [
        tensor.name for tensor in graph.tensors if tensor.role is Role.AUXILIARY and tensor.alias is None
    ]
    assert seeds == ["first.seed", "second.seed"]


def test_partitioned_training_draws_what_one_worker_draws() -> None:
    graph = training_graph(dropout_network(), {"data": (8, 12), "label": (8, 6)}, "sgd")
    values = {
        "data": RNG.normal(size=(8, 12)),
        "label": RNG.normal(size=(8, 6)),
        "fc_weight": RNG.normal(size=(6, 12)),
        "fc_bias": RNG.normal(size=6),
        "learning_rate": [0.1],
        "first.seed": [3.0],
        "second.seed": [3.0],
    }
    results = []
    for workers in (1, 4):
        with Executor(tofu.lower(graph, tofu.partition(graph, workers=workers))) as executor:
            for name, value in values.items():
                executor.write(name, value)
            executor.run()
            first = executor.read("fc_weight")
            executor.run()
            results.append((first, executor.read("fc_weight"), executor.read("first.seed")))
    for alone, parts in zip(*results, strict=True):
        np.testing.assert_allclose(parts, alone, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(results[0][2], [5])
