"""Normalising operators: values, statistics and updates of moving averages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.operators import get

RNG = np.random.default_rng(13)
SHAPES = {"data": (2, 3, 4, 4)} | dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), (3,))
TENSORS = {name: RNG.uniform(0.5, 1.5, shape) for name, shape in SHAPES.items()}


def per_channel(values: np.ndarray) -> np.ndarray:
    return values.reshape(1, 3, 1, 1)


def test_batch_norm_in_training_uses_the_batch(forward: Callable[..., dict]) -> None:
    values = forward(get("BatchNorm"), {"fix_gamma": False, "eps": 1e-5}, TENSORS)
    data = TENSORS["data"]
    mean, var = data.mean((0, 2, 3)), data.var((0, 2, 3))
    np.testing.assert_allclose(values["mean"], mean)
    np.testing.assert_allclose(values["var"], var)
    normal = (data - per_channel(mean)) / np.sqrt(per_channel(var) + 1e-5)
    expected = per_channel(TENSORS["gamma"]) * normal + per_channel(TENSORS["beta"])
    np.testing.assert_allclose(values["output_0"], expected)


def test_batch_norm_in_inference_uses_moving_statistics() -> None:
    bound = get("BatchNorm").bind(SHAPES, training=False, fix_gamma=False)
    mean, var = per_channel(TENSORS["moving_mean"]), per_channel(TENSORS["moving_var"])
    normal = (TENSORS["data"] - mean) / np.sqrt(var + 1e-3)
    expected = per_channel(TENSORS["gamma"]) * normal + per_channel(TENSORS["beta"])
    np.testing.assert_allclose(bound.compute(TENSORS)[0], expected)
    assert [strategy.variable for strategy in bound.strategies] == ["i0", "c", "i2", "i3"]


def test_moving_statistics_are_updated(forward: Callable[..., dict]) -> None:
    operator = get("BatchNorm")
    values = forward(operator, {}, TENSORS)
    updates = operator.updates({"momentum": 0.75}, SHAPES)
    assert set(updates) == {"moving_mean", "moving_var"}
    for state, statistic in (("moving_mean", "mean"), ("moving_var", "var")):
        stage = updates[state]
        (updated,) = stage.bind({name: values[name].shape for name in stage.inputs}).compute(values)
        np.testing.assert_allclose(updated, 0.75 * TENSORS[state] + 0.25 * values[statistic])
    assert operator.updates({"use_global_stats": True}, SHAPES) == {}


def test_statistics_can_be_reduced_over_the_batch() -> None:
    mean, var, _ = get("BatchNorm").stages({}, SHAPES)
    shapes = SHAPES | {"mean": (3,)}
    for stage in (mean, var):
        kinds = {strategy.variable: strategy.kind for strategy in stage.bind(shapes).strategies}
        assert kinds == {"c": "concat", "i0": "reduce", "i2": "reduce", "i3": "reduce"}


def test_gradient_of_a_part_of_the_batch_counts_the_whole_batch() -> None:
    gradient = get("BatchNorm").gradient({}, SHAPES)
    assert gradient is not None
    last = gradient.stages[-1]
    shapes = (
        SHAPES | {"grad_0": SHAPES["data"]} | dict.fromkeys(("mean", "var", "grad_sum", "product_sum"), (3,))
    )
    strategies = {strategy.variable: strategy for strategy in last.bind(shapes).strategies}
    regions = strategies["i0"].input_regions(worker=1, workers=2)
    assert regions["data"] == regions["grad_0"] == ((1, 2), (0, 3), (0, 4), (0, 4))
    assert regions["grad_sum"] == ((0, 3),)


def test_mean_and_deviation_as_outputs() -> None:
    """The third output is one over the deviation, as MXNet 1.9.1 computes it."""
    data = TENSORS["data"]
    bound = get("BatchNorm").bind(SHAPES, output_mean_var=True, eps=0.1)
    _, mean, deviation = bound.compute(TENSORS)
    np.testing.assert_allclose(mean, data.mean((0, 2, 3)))
    np.testing.assert_allclose(deviation, 1 / np.sqrt(data.var((0, 2, 3)) + 0.1))
    moving = get("BatchNorm").bind(SHAPES, training=False, output_mean_var=True, eps=0.1)
    _, mean, deviation = moving.compute(TENSORS)
    np.testing.assert_allclose(mean, TENSORS["moving_mean"])
    np.testing.assert_allclose(deviation, 1 / np.sqrt(TENSORS["moving_var"] + 0.1))


def test_instance_norm() -> None:
    data = RNG.normal(size=(2, 3, 5))
    tensors = {"data": data, "gamma": TENSORS["gamma"], "beta": TENSORS["beta"]}
    bound = get("InstanceNorm").bind({name: array.shape for name, array in tensors.items()})
    normal = (data - data.mean(2, keepdims=True)) / np.sqrt(data.var(2, keepdims=True) + 1e-3)
    expected = tensors["gamma"][:, None] * normal + tensors["beta"][:, None]
    np.testing.assert_allclose(bound.compute(tensors)[0], expected)


@pytest.mark.parametrize(("mode", "axes"), [("instance", (1, 2)), ("channel", (1,)), ("spatial", (2,))])
def test_l2_normalization(mode: str, axes: tuple[int, ...]) -> None:
    data = RNG.normal(size=(2, 3, 5))
    (result,) = get("L2Normalization").bind({"data": data.shape}, mode=mode).compute({"data": data})
    np.testing.assert_allclose(result, data / np.sqrt((data**2).sum(axes, keepdims=True) + 1e-10))


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis: int) -> None:
    data = RNG.normal(size=(2, 3, 5))
    features = data.shape[axis]
    tensors = {"data": data, "gamma": RNG.normal(size=features), "beta": RNG.normal(size=features)}
    bound = get("LayerNorm").bind({name: array.shape for name, array in tensors.items()}, axis=axis)
    moved = np.moveaxis(data, axis, -1)
    normal = (moved - moved.mean(-1, keepdims=True)) / np.sqrt(moved.var(-1, keepdims=True) + 1e-5)
    expected = np.moveaxis(tensors["gamma"] * normal + tensors["beta"], -1, axis)
    np.testing.assert_allclose(bound.compute(tensors)[0], expected)


def test_local_response() -> None:
    data = RNG.normal(size=(2, 5, 3))
    settings = {"nsize": 3, "alpha": 0.5, "beta": 0.6, "knorm": 1.5}
    (result,) = get("LRN").bind({"data": data.shape}, **settings).compute({"data": data})
    squares = np.pad(data**2, ((0, 0), (1, 1), (0, 0)))
    energy = 1.5 + 0.5 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])
    np.testing.assert_allclose(result, data * energy**-0.6)
