"""Updates of weights against MXNet's formulas written in NumPy."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tofu.errors import OperatorError
from tofu.operators import get, names
from tofu.operators.derive import derive
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator

from ..conftest import kernel_call

RNG = np.random.default_rng(14)
WEIGHT, GRAD, FIRST = RNG.normal(size=(3, 2, 3))
SECOND = RNG.uniform(0.1, 1, size=(2, 3))
LR = np.array([0.1])


def update(name: str, tensors: dict[str, np.ndarray], **attributes: float) -> tuple[np.ndarray, ...]:
    shapes = {tensor: array.shape for tensor, array in tensors.items()}
    return get(name).bind(shapes, **attributes).compute(tensors)


def step(wd: float, clip: float, *, decayed: bool = False) -> np.ndarray:
    gradient = 0.5 * GRAD + (wd * WEIGHT if decayed else 0)
    return gradient if clip < 0 else np.clip(gradient, -clip, clip)


@pytest.mark.parametrize("clip", [-1.0, 0.2])
@pytest.mark.parametrize("wd", [0.0, 0.01])
def test_updates(clip: float, wd: float) -> None:
    common = {"wd": wd, "rescale_grad": 0.5, "clip_gradient": clip}
    given = {"weight": WEIGHT, "grad": GRAD, "lr": LR}
    plain = WEIGHT - 0.1 * (step(wd, clip) + wd * WEIGHT)
    np.testing.assert_allclose(update("sgd_update", given, **common)[0], plain)

    weight, momentum = update("sgd_mom_update", {**given, "mom": FIRST}, momentum=0.9, **common)
    np.testing.assert_allclose(momentum, 0.9 * FIRST - 0.1 * (step(wd, clip) + wd * WEIGHT))
    np.testing.assert_allclose(weight, WEIGHT + momentum)

    states = {"mean": FIRST, "var": SECOND}
    weight, mean, var = update(
        "adam_update", {**given, **states}, beta1=0.8, beta2=0.9, epsilon=1e-3, **common
    )
    gradient = step(wd, clip, decayed=True)
    np.testing.assert_allclose(mean, 0.8 * FIRST + 0.2 * gradient)
    np.testing.assert_allclose(var, 0.9 * SECOND + 0.1 * gradient**2)
    np.testing.assert_allclose(weight, WEIGHT - 0.1 * mean / (np.sqrt(var) + 1e-3))


@pytest.mark.parametrize("clip", [-1.0, 0.2])
def test_adam_with_decoupled_decay(clip: float) -> None:
    given = {"weight": WEIGHT, "grad": GRAD, "mean": FIRST, "var": SECOND, "lr": LR, "count": np.array([2.0])}
    settings = {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}
    weight, mean, var = update(
        "adamw_update", given, **settings, wd=0.01, rescale_grad=0.5, clip_gradient=clip
    )
    gradient = step(0, clip)
    np.testing.assert_allclose(mean, 0.8 * FIRST + 0.2 * gradient)
    np.testing.assert_allclose(var, 0.9 * SECOND + 0.1 * gradient**2)
    corrected, spread = mean / (1 - 0.8**3), np.sqrt(var / (1 - 0.9**3))
    np.testing.assert_allclose(weight, WEIGHT - 0.1 * (corrected / (spread + 1e-3) + 0.01 * WEIGHT))


@pytest.mark.parametrize("clip", [-1.0, 0.2])
@pytest.mark.parametrize("bound", [-1.0, 0.3])
def test_rmsprop(clip: float, bound: float) -> None:
    common = {"wd": 0.01, "rescale_grad": 0.5, "clip_gradient": clip, "clip_weights": bound, "epsilon": 1e-3}
    given = {"weight": WEIGHT, "grad": GRAD, "n": SECOND, "lr": LR}
    gradient = step(0.01, clip, decayed=True)
    squares = 0.8 * SECOND + 0.2 * gradient**2

    def bounded(weight: np.ndarray) -> np.ndarray:
        return weight if bound < 0 else np.clip(weight, -bound, bound)

    weight, n = update("rmsprop_update", given, gamma1=0.8, **common)
    np.testing.assert_allclose(n, squares)
    np.testing.assert_allclose(weight, bounded(WEIGHT - 0.1 * gradient / np.sqrt(squares + 1e-3)))

    mean = 0.1 * FIRST
    weight, n, g, delta = update(
        "rmspropalex_update", {**given, "g": mean, "delta": FIRST}, gamma1=0.8, gamma2=0.7, **common
    )
    average = 0.8 * mean + 0.2 * gradient
    change = 0.7 * FIRST - 0.1 * gradient / np.sqrt(squares - average**2 + 1e-3)
    np.testing.assert_allclose(n, squares)
    np.testing.assert_allclose(g, average)
    np.testing.assert_allclose(delta, change)
    np.testing.assert_allclose(weight, bounded(WEIGHT + change))


def test_master_copies() -> None:
    """The weight follows its master copy, whatever it was."""
    common = {"wd": 0.01, "rescale_grad": 0.5}
    given = {"grad": GRAD, "lr": LR, "mom": FIRST}
    for name, plain in (("mp_sgd_update", "sgd_update"), ("mp_sgd_mom_update", "sgd_mom_update")):
        tensors = {tensor: given[tensor] for tensor in get(plain).arguments({}) if tensor in given}
        expected = update(plain, {**tensors, "weight": WEIGHT}, **common)
        weight, *momentum, master = update(
            name, {**tensors, "weight": 0 * WEIGHT, "weight32": WEIGHT}, **common
        )
        np.testing.assert_array_equal(weight, expected[0])
        np.testing.assert_array_equal(master, expected[0])
        np.testing.assert_array_equal(momentum, expected[1:])


OVERWRITING = [name for name in names() if get(name).overwrites]


@pytest.mark.parametrize("name", OVERWRITING)
def test_updates_may_overwrite_what_they_read(name: str) -> None:
    operator = get(name)
    assert operator.example is not None
    (stage,) = operator.stages({}, operator.example.shapes)
    bound = stage.bind(operator.example.shapes)
    assert set(operator.overwrites) & bound.reads <= bound.in_place
    assert len(operator.overwrites) == len(bound.output_shapes) == len(operator.outputs({}))


def in_place(name: str, call: KernelCall) -> KernelCall:
    """Return a call of an update whose outputs lie in the tensors that they overwrite."""
    over = tuple(call.inputs.get(tensor, call.outputs[k]) for k, tensor in enumerate(get(name).overwrites))
    return replace(call, outputs=over)


def update_of(name: str, shape: tuple[int, ...] | None = None) -> BoundOperator:
    """Return an update of a weight of a shape, that of the operator's example if None."""
    example = get(name).example
    assert example is not None
    shapes = {t: shape if shape and prod(of) > 1 else of for t, of in example.shapes.items()}
    (stage,) = get(name).stages({}, shapes)
    return stage.bind(shapes)


@pytest.mark.parametrize("name", OVERWRITING)
def test_results_do_not_depend_on_whether_an_update_overwrites(name: str) -> None:
    bound = update_of(name, (37, 50))
    tensors = {tensor: RNG.uniform(0.1, 0.9, bound.shapes[tensor]) for tensor in bound.reads}
    apart = kernel_call(bound, bound.full_box, tensors, "float32")
    derive(apart)()
    call = in_place(name, kernel_call(bound, bound.full_box, tensors, "float32"))
    derive(call)()
    for found, expected in zip(call.outputs, apart.outputs, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "arrays"), [("sgd_update", 1), ("sgd_mom_update", 2), ("adam_update", 2), ("adamw_update", 2)]
)
def test_updates_compute_in_the_memory_that_they_overwrite(name: str, arrays: int) -> None:
    """Besides it they need few arrays of the size of the weight."""
    bound = update_of(name, (37, 50))
    tensors = {tensor: np.ones(bound.shapes[tensor]) for tensor in bound.reads}
    call = in_place(name, kernel_call(bound, bound.full_box, tensors, "float32"))
    derive(call)
    assert call.workspace.used_bytes < (arrays + 0.5) * 37 * 50 * 4


@pytest.mark.parametrize(("number", "expected"), [(0, GRAD), (1, FIRST + GRAD), (7, FIRST + GRAD)])
def test_a_sum_begins_with_the_first_micro_batch(number: int, expected: np.ndarray) -> None:
    """Whatever an earlier sum has left, infinities too."""
    before = FIRST if number else np.full_like(FIRST, np.inf)
    tensors = {"total": before, "grad": GRAD, "micro_batch": np.array([float(number)])}
    np.testing.assert_array_equal(update("accumulate_update", tensors)[0], expected)


def test_a_sum_of_gradients_begins_as_the_first_one() -> None:
    """To the sign of zeros, so that it has the bits of a sum without a start value."""
    tensors = {"total": FIRST, "grad": np.full_like(GRAD, -0.0), "micro_batch": np.zeros(1)}
    assert np.signbit(update("accumulate_update", tensors)[0]).all()


@pytest.mark.parametrize("clip", [-1.0, 0.2])
def test_adam_that_corrects_moments_before_it_adds_epsilon(clip: float) -> None:
    given = {"weight": WEIGHT, "grad": GRAD, "mean": FIRST, "var": SECOND, "lr": LR, "count": np.array([2.0])}
    settings = {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}
    weight, mean, var = update(
        "adam_corrected_update", given, **settings, wd=0.01, rescale_grad=0.5, clip_gradient=clip
    )
    gradient = step(0, clip) + 0.01 * WEIGHT
    np.testing.assert_allclose(mean, 0.8 * FIRST + 0.2 * gradient)
    np.testing.assert_allclose(var, 0.9 * SECOND + 0.1 * gradient**2)
    corrected, spread = mean / (1 - 0.8**3), np.sqrt(var / (1 - 0.9**3))
    np.testing.assert_allclose(weight, WEIGHT - 0.1 * corrected / (spread + 1e-3))


def test_gradients_are_shortened_to_a_norm() -> None:
    (squares,) = update("sum_of_squares", {"data": GRAD})
    np.testing.assert_allclose(squares, [(GRAD**2).sum()])
    for most in (0.1, 100.0):
        (factor,) = update("norm_factor", {"squares": squares}, max_norm=most, rescale_grad=0.5)
        np.testing.assert_allclose(factor, [min(1, most / (0.5 * np.linalg.norm(GRAD)))])
    np.testing.assert_allclose(update("shortened", {"grad": GRAD, "factor": factor})[0], GRAD)
    (factor,) = update("norm_factor", {"squares": np.zeros(1)}, max_norm=2)
    assert factor.tolist() == [1]
    with pytest.raises(OperatorError, match="max_norm=0 must be above 0"):
        get("norm_factor").description(max_norm=0)
