"""Gradients of every operator against finite differences; of losses against the loss that they stand for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.operators import get, names
from tofu.operators.operator import Operator

OTHER_GRADIENTS = {"IdentityAttachKLSparseReg", "linalg_potrf"}
"""Operators whose gradient is not that of their output; other tests hold it against what it should be."""

DIFFERENTIABLE = [
    name
    for name in names()
    if get(name).differentiable
    and not get(name).is_loss
    and not get(name).overwrites
    and name not in OTHER_GRADIENTS
]


def check(
    operator: Operator,
    attributes: dict[str, object],
    tensors: dict[str, np.ndarray],
    forward: Callable[..., dict[str, np.ndarray]],
    gradients: Callable[..., dict[str, np.ndarray]],
) -> None:
    """Compare with central differences of the outputs' product with random head gradients."""
    outputs = operator.outputs(attributes)
    rng = np.random.default_rng(8)
    values = forward(operator, attributes, tensors)
    heads = tuple(rng.uniform(-1, 1, values[name].shape) for name in outputs)
    found = gradients(operator, attributes, tensors, heads)

    def objective(changed: dict[str, np.ndarray]) -> float:
        results = forward(operator, attributes, changed)
        return sum(float((results[name] * head).sum()) for name, head in zip(outputs, heads, strict=True))

    for name in operator.arguments(attributes):
        if operator.example is not None and name in operator.example.whole:
            assert name not in found
            continue
        expected = np.zeros_like(tensors[name])
        for position in np.ndindex(expected.shape):
            step = np.zeros_like(expected)
            step[position] = 1e-5
            up, down = {**tensors, name: tensors[name] + step}, {**tensors, name: tensors[name] - step}
            expected[position] = (objective(up) - objective(down)) / 2e-5
        np.testing.assert_allclose(
            found.get(name, 0 * expected), expected, rtol=1e-4, atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_example(
    name: str, example: Callable[..., dict], forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    operator = get(name)
    assert operator.example is not None
    check(operator, dict(operator.example.attributes), example(operator, 7), forward, gradients)


CASES = {
    "convolution-strided": (
        "Convolution",
        {"kernel": (3, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0), "num_filter": 2},
        {"data": (2, 2, 5, 5), "weight": (2, 2, 3, 2), "bias": (2,)},
    ),
    "convolution-1d": (
        "Convolution",
        {"kernel": (3,), "pad": (1,), "num_filter": 2, "no_bias": True},
        {"data": (2, 3, 5), "weight": (2, 3, 3)},
    ),
    "convolution-grouped": (
        "Convolution",
        {"kernel": (2, 2), "num_filter": 4, "num_group": 2, "no_bias": True},
        {"data": (1, 4, 3, 3), "weight": (4, 2, 2, 2)},
    ),
    "pooling-overlapping": (
        "Pooling",
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"},
        {"data": (1, 2, 5, 5)},
    ),
    "pooling-average-full": (
        "Pooling",
        {"kernel": (3,), "stride": (2,), "pool_type": "avg", "pooling_convention": "full"},
        {"data": (1, 2, 6)},
    ),
    "pooling-global": (
        "Pooling",
        {"kernel": (7, 7), "global_pool": True, "pool_type": "avg"},
        {"data": (2, 2, 3, 3)},
    ),
    "fully-connected-images": (
        "FullyConnected",
        {"num_hidden": 2},
        {"data": (2, 2, 3), "weight": (2, 6), "bias": (2,)},
    ),
    "fully-connected-last": (
        "FullyConnected",
        {"num_hidden": 2, "flatten": False},
        {"data": (2, 2, 3), "weight": (2, 3), "bias": (2,)},
    ),
    "batch-norm-matrix": (
        "BatchNorm",
        {"fix_gamma": False},
        {"data": (4, 3), "gamma": (3,), "beta": (3,), "moving_mean": (3,), "moving_var": (3,)},
    ),
    "batch-norm-last-axis": (
        "BatchNorm",
        {"fix_gamma": False, "axis": -1},
        {"data": (2, 3, 4), "gamma": (4,), "beta": (4,), "moving_mean": (4,), "moving_var": (4,)},
    ),
    "batch-norm-moving-statistics": (
        "BatchNorm",
        {"fix_gamma": False, "use_global_stats": True},
        {"data": (4, 3), "gamma": (3,), "beta": (3,), "moving_mean": (3,), "moving_var": (3,)},
    ),
    "softmax-first-axis": ("softmax", {"axis": 0}, {"data": (3, 2)}),
    "softmax-vector": ("softmax", {}, {"data": (4,)}),
    "softmax-activation-images": ("SoftmaxActivation", {}, {"data": (2, 2, 2)}),
    "split-squeezed": ("SliceChannel", {"num_outputs": 3, "squeeze_axis": True}, {"data": (2, 3, 2)}),
    "prelu": ("LeakyReLU", {"act_type": "prelu"}, {"data": (2, 3, 2), "gamma": (3,)}),
}


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, forward: Callable[..., dict], gradients: Callable[..., dict]) -> None:
    name, attributes, shapes = CASES[case]
    rng = np.random.default_rng(9)
    tensors = {tensor: rng.uniform(0.1, 0.9, shape) for tensor, shape in shapes.items()}
    check(get(name), dict(attributes), tensors, forward, gradients)


def test_fixed_gamma_is_one_and_has_no_gradient(
    forward: Callable[..., dict], gradients: Callable[..., dict]
) -> None:
    rng = np.random.default_rng(10)
    tensors = {"data": rng.normal(size=(4, 3)), "gamma": np.full(3, 5.0), "beta": rng.normal(size=3)}
    tensors |= {"moving_mean": np.zeros(3), "moving_var": np.ones(3)}
    operator = get("BatchNorm")
    data = tensors["data"]
    expected = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-3) + tensors["beta"]
    np.testing.assert_allclose(forward(operator, {}, tensors)["output_0"], expected)
    assert set(gradients(operator, {}, tensors, (rng.normal(size=(4, 3)),))) == {"data", "beta"}


def test_ties_and_thresholds(gradients: Callable[..., dict]) -> None:
    tensors = {"data": np.array([-1.0, 0.0, 2.0])}
    head = (np.ones(3),)
    found = gradients(get("Activation"), {"act_type": "relu"}, tensors, head)
    np.testing.assert_array_equal(found["data"], [0, 0, 1])
    assert gradients(get("BlockGrad"), {}, tensors, head) == {}
    assert gradients(get("floor"), {}, tensors, head) == {}
