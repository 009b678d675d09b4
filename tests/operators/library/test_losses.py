"""Loss operators: the gradient is that of the loss they stand for, scaled as MXNet scales it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.errors import ShapeError
from tofu.operators import get

RNG = np.random.default_rng(11)
DATA = RNG.normal(size=(3, 4))
LABEL = np.array([2.0, 1.0, 1.0])


def softmax(data: np.ndarray, axis: int = 1) -> np.ndarray:
    powers = np.exp(data - data.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def gradient_of(
    gradients: Callable[..., dict], name: str, tensors: dict[str, np.ndarray], **attributes: object
) -> np.ndarray:
    """The gradient of data; head gradients are zero, for a loss must not read them."""
    found = gradients(get(name), attributes, tensors, (np.zeros(tensors["data"].shape),))
    assert set(found) == {"data"}
    return found["data"]


def test_softmax_output(gradients: Callable[..., dict]) -> None:
    difference = softmax(DATA) - np.eye(4)[LABEL.astype(int)]
    kept = difference * (LABEL != 1)[:, None]
    tensors = {"data": DATA, "label": LABEL}
    cases = [
        ({}, difference),
        ({"grad_scale": "0.5"}, difference / 2),
        ({"normalization": "batch"}, difference / 3),
        ({"use_ignore": True, "ignore_label": 1}, kept),
        ({"use_ignore": True, "ignore_label": 1, "normalization": "valid"}, kept / 1),
        (
            {"use_ignore": True, "ignore_label": 2, "normalization": "valid"},
            difference * (LABEL != 2)[:, None] / 2,
        ),
        ({"ignore_label": 2, "normalization": "valid"}, difference / 2),
    ]
    for attributes, expected in cases:
        found = gradient_of(gradients, "SoftmaxOutput", tensors, **attributes)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(attributes))


def test_valid_normalization_with_nothing_valid(gradients: Callable[..., dict]) -> None:
    tensors = {"data": DATA, "label": np.full(3, -1.0)}
    found = gradient_of(gradients, "SoftmaxOutput", tensors, use_ignore=True, normalization="valid")
    np.testing.assert_array_equal(found, np.zeros((3, 4)))


@pytest.mark.parametrize("label_shape", [(2, 2, 3), (2, 6), (2, 1, 2, 3)])
@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
def test_softmax_of_many_outputs(
    gradients: Callable[..., dict], label_shape: tuple[int, ...], normalization: str
) -> None:
    data = RNG.normal(size=(2, 4, 2, 3))
    label = RNG.integers(0, 4, (2, 2, 3)).astype(float)
    hot = np.moveaxis(np.eye(4)[label.astype(int)], -1, 1)
    divisor = {"null": 6, "batch": 12, "valid": 12}[normalization]
    tensors = {"data": data, "label": label.reshape(label_shape)}
    found = gradient_of(gradients, "SoftmaxOutput", tensors, multi_output=True, normalization=normalization)
    np.testing.assert_allclose(found, (softmax(data) - hot) / divisor, rtol=1e-12)


def test_softmax_over_images_counts_classes_flat(gradients: Callable[..., dict]) -> None:
    data = RNG.normal(size=(2, 2, 3))
    label = np.array([4.0, 0.0])
    flat = softmax(data.reshape(2, 6)) - np.eye(6)[label.astype(int)]
    found = gradient_of(gradients, "SoftmaxOutput", {"data": data, "label": label})
    np.testing.assert_allclose(found, flat.reshape(2, 2, 3), rtol=1e-12)
    label = np.array([[0.0, 2.0], [1.0, 1.0]])
    found = gradient_of(gradients, "SoftmaxOutput", {"data": data, "label": label}, preserve_shape=True)
    np.testing.assert_allclose(found, softmax(data, 2) - np.eye(3)[label.astype(int)], rtol=1e-12)


def test_probabilities_as_label(gradients: Callable[..., dict]) -> None:
    label = softmax(RNG.normal(size=(3, 4)))
    found = gradient_of(gradients, "SoftmaxOutput", {"data": DATA, "label": label})
    np.testing.assert_allclose(found, softmax(DATA) - label, rtol=1e-12)


def test_label_that_fits_nothing() -> None:
    operator = get("SoftmaxOutput")
    with pytest.raises(ShapeError, match=r"label has shape \(4,\), but data of shape \(3, 4\) needs \(3,\)"):
        operator.gradient({}, {"data": (3, 4), "label": (4,)})


def test_with_out_grad_softmax_output_multiplies_by_the_gradient_it_is_given(
    gradients: Callable[..., dict],
) -> None:
    operator, head = get("SoftmaxOutput"), RNG.normal(size=(3, 4))
    tensors = {"data": DATA, "label": LABEL}
    found = gradients(operator, {"out_grad": True}, tensors, (head,))["data"]
    np.testing.assert_allclose(found, (softmax(DATA) - np.eye(4)[LABEL.astype(int)]) * head, rtol=1e-12)
    assert operator.starts_backward({})
    assert not operator.starts_backward({"out_grad": True})


def test_large_scores_do_not_overflow(forward: Callable[..., dict]) -> None:
    data = np.array([[1000.0, 0.0], [-1000.0, 0.0]], np.float32)
    output = forward(get("SoftmaxOutput"), {}, {"data": data, "label": np.zeros(2)})["output_0"]
    np.testing.assert_array_equal(output, [[1, 0], [0, 1]])


def test_regressions(gradients: Callable[..., dict], forward: Callable[..., dict]) -> None:
    label = RNG.normal(size=(3, 4))
    probability = 1 / (1 + np.exp(-DATA))
    expected = {
        "LinearRegressionOutput": (DATA, DATA - label),
        "LogisticRegressionOutput": (probability, probability - label),
        "MAERegressionOutput": (DATA, np.sign(DATA - label)),
    }
    tensors = {"data": DATA, "label": label}
    for name, (output, difference) in expected.items():
        np.testing.assert_allclose(forward(get(name), {}, tensors)["output_0"], output)
        found = gradient_of(gradients, name, tensors, grad_scale=2)
        np.testing.assert_allclose(found, difference * 2 / 4, err_msg=name)


def test_regression_label_without_the_dimension_of_one(gradients: Callable[..., dict]) -> None:
    data, label = RNG.normal(size=(3, 1)), RNG.normal(size=3)
    found = gradient_of(gradients, "LinearRegressionOutput", {"data": data, "label": label})
    np.testing.assert_allclose(found, data - label[:, None])
    with pytest.raises(ShapeError, match="must be equal"):
        get("LinearRegressionOutput").gradient({}, {"data": (3, 2), "label": (3,)})


@pytest.mark.parametrize("use_linear", [False, True])
def test_hinge_loss(gradients: Callable[..., dict], use_linear: bool) -> None:
    signed = np.where(np.eye(4)[LABEL.astype(int)] == 1, -1, 1)
    short = 0.5 + signed * DATA
    slope = (short > 0) * (1 if use_linear else 2 * short)
    settings = {"margin": 0.5, "regularization_coefficient": 0.3, "use_linear": use_linear}
    found = gradient_of(gradients, "SVMOutput", {"data": DATA, "label": LABEL}, **settings)
    np.testing.assert_allclose(found, 0.3 * signed * slope)


def test_sparsity_of_mean_activations(gradients: Callable[..., dict], forward: Callable[..., dict]) -> None:
    operator = get("IdentityAttachKLSparseReg")
    tensors = {"data": RNG.uniform(0.1, 0.9, (5, 3)), "moving_avg": np.array([0.2, 0.5, 0.7])}
    settings = {"sparseness_target": 0.2, "penalty": 0.5, "momentum": 0.75}
    moved = 0.75 * tensors["moving_avg"] + 0.25 * tensors["data"].mean(0)
    head = RNG.normal(size=(5, 3))
    found = gradients(operator, settings, tensors, (head,))["data"]
    np.testing.assert_allclose(found, head + 0.5 * (0.8 / (1 - moved) - 0.2 / moved))
    shapes = {name: array.shape for name, array in tensors.items()}
    bound = operator.updates(settings, shapes)["moving_avg"].bind(shapes)
    (updated,) = bound.compute(tensors)
    np.testing.assert_allclose(updated, moved)
    np.testing.assert_array_equal(forward(operator, settings, tensors)["output_0"], tensors["data"])


def test_cross_entropy(gradients: Callable[..., dict], forward: Callable[..., dict]) -> None:
    tensors = {"data": DATA, "label": LABEL}
    chosen = softmax(DATA)[np.arange(3), LABEL.astype(int)]
    result = forward(get("softmax_cross_entropy"), {}, tensors)["output_0"]
    np.testing.assert_allclose(result, [-np.log(chosen).sum()])
    found = gradients(get("softmax_cross_entropy"), {}, tensors, (np.array([2.0]),))
    np.testing.assert_allclose(found["data"], 2 * (softmax(DATA) - np.eye(4)[LABEL.astype(int)]))


def test_make_loss(gradients: Callable[..., dict]) -> None:
    data = np.array([[-1.0, 2.0], [3.0, 4.0]])
    for attributes, expected in [
        ({"grad_scale": 6}, 6),
        ({"grad_scale": 6, "normalization": "batch"}, 3),
        ({"grad_scale": 6, "normalization": "valid"}, 2),
    ]:
        found = gradient_of(gradients, "MakeLoss", {"data": data}, **attributes)
        np.testing.assert_array_equal(found, np.full((2, 2), expected))
    np.testing.assert_array_equal(gradient_of(gradients, "make_loss", {"data": data}), np.ones((2, 2)))


@pytest.mark.parametrize("name", ["MakeLoss", "make_loss"])
def test_a_loss_without_dimensions_has_a_gradient(gradients: Callable[..., dict], name: str) -> None:
    found = gradient_of(gradients, name, {"data": np.array(np.inf)})
    assert found.shape == ()
    assert found == 1


@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
def test_a_loss_without_dimensions_is_one_sample(gradients: Callable[..., dict], normalization: str) -> None:
    settings = {"grad_scale": 3.0, "normalization": normalization}
    assert gradient_of(gradients, "MakeLoss", {"data": np.array(2.0)}, **settings) == 3


@pytest.mark.parametrize(("name", "value"), [("ones_like", 1), ("zeros_like", 0)])
def test_constants_like_a_number_are_numbers(name: str, value: int) -> None:
    (found,) = get(name).bind({"data": ()}).compute({"data": np.array(np.nan)})
    assert found.shape == ()
    assert found == value
