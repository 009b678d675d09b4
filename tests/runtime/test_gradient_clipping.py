"""Gradients that are clipped, by value and by the norm of all of them together, whatever the partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import GraphError, OperatorError
from tofu.optimizer import adam, adamw, rmsprop, sgd
from tofu.sync import Cast, Rewrite, Strategy, builders

RNG = np.random.default_rng(27)
BATCH = 8
PARAMETERS = ("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias")
DATA = RNG.normal(size=(BATCH, 12)).astype("f4")
LABEL = RNG.integers(0, 4, BATCH).astype("f4")


def network() -> Any:
    with tofu.sym.NameScope():
        hidden = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=16, name="fc1")
        hidden = tofu.sym.Activation(hidden, act_type="tanh", name="bent")
        return tofu.sym.SoftmaxOutput(
            tofu.sym.FullyConnected(hidden, num_hidden=4, name="fc2"), name="softmax"
        )


def step(optimizer: Any, workers: int = 1, **options: Any) -> dict[str, np.ndarray]:
    """Return by how much one step at the learning rate 1 makes each parameter smaller."""
    with tofu.Module(network(), [tofu.cpu()] * workers, dtype=options.pop("dtype", "float32")) as module:
        iterator = tofu.ArrayIterator({"data": DATA}, {"softmax_label": LABEL}, BATCH)
        module.bind(iterator.shapes)
        before = {name: np.array(value) for name, value in module.parameters().items()}
        module.fit(iterator, optimizer=optimizer, learning_rate=1.0, **options)
        return {name: before[name] - value for name, value in module.parameters().items()}


@pytest.fixture(scope="module")
def gradients() -> dict[str, np.ndarray]:
    return step(sgd(momentum=0))


def norm(arrays: dict[str, np.ndarray]) -> float:
    return float(np.sqrt(sum((array.astype("f8") ** 2).sum() for array in arrays.values())))


@pytest.mark.parametrize("workers", [1, 4, 6])
@pytest.mark.parametrize("share", [0.25, 2.0])
def test_the_norm_of_all_gradients_is_bounded(
    gradients: dict[str, np.ndarray], share: float, workers: int
) -> None:
    most = share * norm(gradients)
    found = step(sgd(momentum=0, clip_norm=most), workers)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(found[name], min(share, 1) * gradient, rtol=1e-4, atol=1e-7)
    assert norm(found) == pytest.approx(min(most, norm(gradients)), rel=1e-5)


def test_values_are_bounded_after_the_norm(gradients: dict[str, np.ndarray]) -> None:
    shorter = {name: gradient / 2 for name, gradient in gradients.items()}
    most = float(np.median(np.abs(shorter["fc1_weight"])))
    found = step(sgd(momentum=0, clip_norm=norm(gradients) / 2, clip_value=most), 4)
    for name, gradient in shorter.items():
        np.testing.assert_allclose(found[name], np.clip(gradient, -most, most), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("optimizer", [adam, adamw, rmsprop, sgd])
def test_every_optimizer_takes_both_bounds(optimizer: Any) -> None:
    made = optimizer(clip_value=0.5, clip_norm=2)
    assert (made.attributes["clip_gradient"], made.clip_norm) == (0.5, 2.0)
    for bound in ("clip_value", "clip_norm"):
        for wrong in (0, -1, float("nan"), float("inf"), "much"):
            with pytest.raises(OperatorError, match=rf"{bound} is .* give a positive number, or None"):
                optimizer(**{bound: wrong})


@pytest.mark.parametrize("unroll", [False, True])
def test_the_norm_is_that_of_the_sum_over_micro_batches(
    gradients: dict[str, np.ndarray], unroll: bool
) -> None:
    found = step(sgd(momentum=0, clip_norm=norm(gradients) / 2), 2, accumulate=4, unroll=unroll)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(found[name], gradient / 2, rtol=1e-4, atol=1e-6)


def test_the_norm_of_scaled_gradients_in_16_bits_is_the_true_one(gradients: dict[str, np.ndarray]) -> None:
    found = step(sgd(momentum=0, clip_norm=norm(gradients) / 2), 2, dtype="float16")
    assert norm(found) == pytest.approx(norm(gradients) / 2, rel=1e-2)


@pytest.mark.parametrize(
    "method", ["recursive", "exact", "all-reduce", "ps", "data-parallel", "megatron:dp2-tp2"]
)
def test_plans_move_what_they_say(method: str) -> None:
    graph = tofu.training_graph(
        network(), {"data": DATA.shape, "softmax_label": LABEL.shape}, sgd(clip_norm=0.1)
    )
    plan = tofu.partition(graph, 4, method)
    plan.verify(graph)
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        executor.run()
        assert executor.fetched_bytes == plan.cost_bytes


def test_many_parameters_are_summed_in_groups() -> None:
    """A sum of squares has at most 64 terms in one operation, so that descriptions stay short."""
    with tofu.sym.NameScope():
        total = tofu.sym.Variable("data")
        for number in range(70):
            total = total * tofu.sym.Variable(f"scale{number}_gamma", shape=(2,))
        symbol = tofu.sym.MakeLoss(total, name="loss")
    graph = tofu.training_graph(symbol, {"data": (2,)}, sgd(clip_norm=1.0))
    added = [each for each in graph.operations if each.bound.description.name == "add_n"]
    sums = [len(each.inputs) for each in added]
    assert sorted(sums) == [2, 6, 64]


def test_a_gradient_that_is_shortened_cannot_be_encoded() -> None:
    graph = tofu.training_graph(
        network(), {"data": DATA.shape, "softmax_label": LABEL.shape}, sgd(clip_norm=0.1)
    )
    plain = builders.all_reduce(graph, 4)
    halves = Strategy(
        {name: replace(how, rewrite=Rewrite(Cast("float16"))) for name, how in plain.variables.items()}
    )
    with pytest.raises(
        GraphError, match=r"shortened\(grad\(fc1_weight\)\)' cannot be applied to each replica"
    ):
        tofu.sync.compile(graph, 4, halves)


def test_an_unrolled_graph_has_one_norm() -> None:
    graph = tofu.training_graph(
        network(), {"data": (2, 12), "softmax_label": (2,)}, sgd(clip_norm=0.1), micro_batches=4, unroll=True
    )
    shortened = [each.name for each in graph.operations if each.name.startswith(("norm", "shortened"))]
    assert shortened == ["norm_factor", *(f"shortened(grad({name}))" for name in PARAMETERS)]
