"""Arguments of wrong types are refused before anything runs, by errors that name them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import DataError, ExecutionError, PlanError, ShapeError, TofuError
from tofu.models.files import Reading


def network() -> tofu.Symbol:
    product = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=3, name="fc")
    return tofu.sym.SoftmaxOutput(product, name="softmax")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", "x"),
        ("learning_rate", None),
        ("optimizer", 5),
        ("metric", 5),
        ("metric", [5]),
        ("accumulate", "2"),
        ("accumulate", 2.0),
        ("checkpoint", 5),
        ("num_epoch", "1"),
        ("num_epoch", 1.5),
        ("on_step", 5),
        ("on_epoch", 5),
    ],
)
def test_fit(name: str, value: Any) -> None:
    batches = tofu.ArrayIterator(np.zeros((8, 4), np.float32), np.zeros(8, np.float32), batch_size=4)
    with (
        tofu.Module(network(), [tofu.cpu(0)]) as module,
        pytest.raises(TofuError, match=f"{name} is .* give"),
    ):
        module.fit(batches, **{name: value})


@pytest.mark.parametrize("rate", [None, "a", [1, 2], float("nan")])
def test_a_function_of_the_step_gives_numbers(rate: Any) -> None:
    batches = tofu.ArrayIterator(np.zeros((8, 4), np.float32), np.zeros(8, np.float32), batch_size=4)
    with (
        tofu.Module(network(), [tofu.cpu(0)]) as module,
        pytest.raises(DataError, match=r"the learning rate of step 0 is .*; give a finite number"),
    ):
        module.fit(batches, learning_rate=lambda step: rate)


def test_values_that_are_not_arrays() -> None:
    ragged: Any = [[1], [1, 2]]
    said = "must be an array of numbers: .* inhomogeneous shape"
    with tofu.Module(network(), [tofu.cpu(0)]) as module:
        executor = module.bind({"data": (4, 4), "softmax_label": (4,)})
        with pytest.raises(DataError, match=f"'data' {said}"):
            executor.write("data", ragged)
        with pytest.raises(DataError, match=f"'fc_weight' {said}"):
            module.set_parameters({"fc_weight": ragged})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: tofu.optimizer.adam(beta1=1.0), r"beta1 is 1\.0 \(float\); give a number from 0 to below 1"),
        (lambda: tofu.optimizer.adam(beta1=-1), "beta1 is -1"),
        (lambda: tofu.optimizer.adamw(beta2="x"), "beta2 is 'x'"),
        (lambda: tofu.optimizer.sgd(weight_decay="x"), r"weight_decay is 'x' \(str\); give a finite number"),
        (lambda: tofu.optimizer.sgd(rescale="x"), "rescale is 'x'"),
    ],
)
def test_optimizers(make: Any, says: str) -> None:
    with pytest.raises(TofuError, match=says):
        make()


@pytest.mark.parametrize("value", [0, -1, math.nan, -math.inf, None, "a"])
def test_the_watchdog(value: Any) -> None:
    graph = tofu.training_graph(network(), {"data": (4, 4), "softmax_label": (4,)})
    program = tofu.lower(graph, tofu.partition(graph, 2))
    with pytest.raises(ExecutionError, match=r"watchdog_seconds is .* give a positive number of seconds"):
        tofu.Executor(program, watchdog_seconds=value)
    with tofu.Executor(program, watchdog_seconds=math.inf) as executor:
        executor.run()


def test_constraints_regions_and_readings() -> None:
    graph = tofu.training_graph(network(), {"data": (4, 4), "softmax_label": (4,)})
    with pytest.raises(PlanError, match=r"a constraint is 5 \(int\)"):
        tofu.partition(graph, 2, constraints=[5])
    bound = tofu.parse("def f(a):\n    return lambda i: a[i]").bind({"a": (8,)})
    with pytest.raises(ShapeError, match=r"workers is '2' \(str\)"):
        bound.strategies[0].input_regions(worker=0, workers="2")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"steps is 0 \(int\)"):
        Reading(steps=0)
