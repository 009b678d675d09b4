"""Operators without index variables, such as the gradient of a sum of all elements within an expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.optimizer import sgd

START = np.arange(1, 9, dtype="float32") / 3


@pytest.fixture(scope="module")
def graph() -> Any:
    logarithm = tofu.parse("def total(a): return lambda one=1: log(Sum(lambda i: a[i]))")
    symbol = tofu.sym.MakeLoss(tofu.sym.apply(logarithm, tofu.sym.Variable("a", shape=(8,)), name="total"))
    found = tofu.training_graph(symbol, {}, sgd(momentum=0, rescale=1.0))
    assert [operation.name for operation in found.operations if not operation.bound.variables]
    return found


def _require_gradient(graph: Any, plan: Any) -> None:
    tofu.verify(graph, plan)
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        executor.write("a", START)
        executor.write("learning_rate", [1.0])
        executor.run()
        np.testing.assert_allclose(START - executor.read("a"), 1 / START.sum(), rtol=1e-5)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_they_are_planned_and_run(graph: Any, method: str, workers: int) -> None:
    _require_gradient(graph, tofu.partition(graph, workers, method))


@pytest.mark.usefixtures("native")
def test_they_run_in_c(graph: Any) -> None:
    _require_gradient(graph, tofu.partition(graph, 2))


@pytest.mark.parametrize("method", ["flexflow", "anneal", "pardnn", "auto"])
def test_they_are_simulated(graph: Any, method: str) -> None:
    options = {"proposals": 30} if method in ("flexflow", "anneal") else {}
    plan = tofu.partition(graph, 4, method, machine="p100-node", **options)
    _require_gradient(graph, plan)
    assert tofu.simulate(tofu.lower(graph, plan), "p100-node").seconds > 0


def test_they_are_on_frontiers(graph: Any) -> None:
    for point in tofu.frontier(graph, 4, machine="p100-node").points:
        _require_gradient(graph, point.plan)
