"""Outputs with other variables are stages of their own, each with its own strategies."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Phase

TEXT = """def f(x, y):
    return lambda i: 2 * x[i], lambda j: Sum(lambda k: y[j, k] * y[j, k]), lambda i: x[i] + 1"""
SHAPES = {"x": (4,), "y": (6, 3)}
RNG = np.random.default_rng(5)


def strategies(text: str, shapes: dict[str, tuple[int, ...]]) -> dict[tuple[str, ...], list[str]]:
    return {
        stage.produces: [strategy.variable for strategy in stage.bind(shapes).strategies]
        for stage in tofu.parse(text).stages({}, shapes)
    }


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("lambda i: x[i], lambda i: -x[i]", {("output_0", "output_1"): ["i"]}),
        ("lambda i: x[i], lambda j: y[j, 0]", {("output_0",): ["i"], ("output_1",): ["j"]}),
        (
            "lambda j, k: y[j, k] + x[0], lambda j: Sum(lambda k: y[j, k])",
            {("output_0",): ["j", "k"], ("output_1",): ["j", "k"]},
        ),
        (
            "lambda j: Sum(lambda k: y[j, k]), lambda j: y[j, 0] * x[0]",
            {("output_0",): ["j", "k"], ("output_1",): ["j"]},
        ),
    ],
)
def test_outputs_that_split_alike_are_one_stage(
    results: str, expected: dict[tuple[str, ...], list[str]]
) -> None:
    tensors = "x, y" if "x[" in results and "y[" in results else "x"
    shapes = {name: SHAPES[name] for name in tensors.split(", ")}
    assert strategies(f"def f({tensors}):\n    return {results}", shapes) == expected


def test_results_keep_their_order_and_meaning() -> None:
    operator = tofu.parse(TEXT)
    assert [stage.produces for stage in operator.stages({}, SHAPES)] == [
        ("output_0", "output_2"),
        ("output_1",),
    ]
    tensors = {name: RNG.normal(size=shape) for name, shape in SHAPES.items()}
    bound = operator.bind(SHAPES)
    for computed, expected in zip(bound.compute(tensors), bound.interpret(tensors), strict=True):
        np.testing.assert_allclose(computed, expected)
    tofu.testing.assert_partitionable(operator, shapes=SHAPES)


def test_a_network_has_an_operation_for_each_and_gradients_of_those_that_matter() -> None:
    x, y = tofu.sym.Variable("x"), tofu.sym.Variable("y_weight", shape=(6, 3))
    net = tofu.sym.apply(tofu.parse(TEXT), x, y, name="f")
    assert net.list_outputs() == ["f_output0", "f_output1", "f_output2"]
    loss = tofu.sym.Group([tofu.sym.MakeLoss(net[0] + net[2]), tofu.sym.MakeLoss(net[1])])
    graph = tofu.training_graph(loss, {"x": (4,)}, "sgd")
    names = {phase: [each.name for each in graph.operations if each.phase is phase] for phase in Phase}
    assert names[Phase.FORWARD][:2] == ["f.output_0", "f"]
    assert names[Phase.BACKWARD][-1] == "f.grad.f.y"
    assert len(names[Phase.UPDATE]) == 1


def test_an_attached_kernel_computes_all_outputs() -> None:
    def kernel(call: object) -> None:
        raise AssertionError("not called here")

    (stage,) = tofu.parse(TEXT, kernel=kernel).stages({}, SHAPES)
    assert stage.produces == ("output_0", "output_1", "output_2")
