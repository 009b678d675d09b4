"""Training through functions of single columns, at every row length where a loop of NumPy was found wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.training import training_graph
from tofu.runtime.executor import Executor
from tofu.tdl.ast import Reducer

from .lowering import lowered

ROWS = 16


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("columns", [4, 8, 16])
def test_columns_are_turned_and_negated_on_any_number_of_workers(columns: int, workers: int) -> None:
    half = columns // 2
    turn = tofu.parse(f"def turn(x):\n    return lambda t, d={columns}: -x[t, (d + {half}) % {columns}]")
    shape = (ROWS, columns)
    with NameScope():
        weight_symbol = sym.Variable("weight", shape=shape)
        weighed = sym.elemwise_mul(sym.Variable("data"), weight_symbol, name="weighed")
        turned = sym.apply(turn, weighed, name="turned")
        net = sym.LinearRegressionOutput(turned, sym.Variable("label"), name="fit")
    graph = training_graph(net, {"data": shape, "label": shape}, sgd(momentum=0))
    data, weight, label = (array(shape, seed) for seed in range(3))
    with Executor(lowered(graph, workers)) as executor:
        executor.write("data", data)
        executor.write("weight", weight)
        executor.write("label", label)
        executor.write("learning_rate", [columns * ROWS])
        executor.run()
        found, learned = executor.read("fit_output"), executor.read("weight")
    expected = -np.roll(data * weight, -half, axis=1)
    np.testing.assert_array_equal(found, expected)
    gradient = data * -np.roll(expected - label, half, axis=1)
    np.testing.assert_array_equal(learned, weight - gradient)


def array(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(1, 9, shape).astype(np.float32)


@pytest.mark.parametrize("trusted", [True, False])
def test_terms_are_reduced_on_copies_where_numpy_gets_them_wrong(trusted: bool, monkeypatch: Any) -> None:
    from tofu.operators.kernels import strided
    from tofu.operators.kernels.workspace import Workspace
    from tofu.runtime.collectives import FetchedBytes, Transfer, fixed_order_reduce

    monkeypatch.setattr(strided, "_trusted", lambda *_: trusted)
    target, traffic, workspace = np.zeros((ROWS, 6)), FetchedBytes(), Workspace()
    sources = [array((ROWS, 4), seed).astype(np.float64)[:, ::2] for seed in range(3)]
    terms = [[Transfer(source, target[:, 1:5:3], True)] for source in sources]
    fixed_order_reduce(Reducer.SUM, terms, traffic, workspace)()
    np.testing.assert_array_equal(target[:, 1:5:3], sum(sources))
    assert not target[:, ::3].any()
    assert (workspace.used_bytes == 0) is trusted
