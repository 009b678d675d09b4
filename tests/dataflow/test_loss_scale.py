"""Gradients times a number between the losses and the updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tofu import GraphError
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.loss_scale import scaled_gradient
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import gradient_graph, training_graph
from tofu.dataflow.validate import validate
from tofu.operators.gradients import Gradient, Produced
from tofu.operators.library import registry
from tofu.operators.stages.stage import Stage

from .test_training import SHAPES, fed, perceptron

Array = npt.NDArray[np.float64]
Evaluate = Callable[[Graph, Mapping[str, Array]], dict[str, Array]]
SCALE = 4096.0

FC = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
REGULARIZED = sym.IdentityAttachKLSparseReg(sym.sigmoid(FC), penalty=0.3, name="reg")
LABEL = sym.Variable("softmax_label")
LOSSES: dict[str, tuple[Symbol, tuple[int, ...]]] = {
    "softmax": (sym.SoftmaxOutput(FC, LABEL, name="softmax"), (4,)),
    "softmax with heads": (sym.MakeLoss(sym.log_softmax(FC)), ()),
    "linear": (sym.LinearRegressionOutput(FC, LABEL), (4, 3)),
    "mean absolute": (sym.MAERegressionOutput(FC, LABEL), (4, 3)),
    "hinge": (sym.SVMOutput(FC, LABEL), (4,)),
    "valid elements": (sym.MakeLoss(sym.square(FC), normalization="valid", grad_scale=0.5), ()),
    "a penalty on the way": (sym.LinearRegressionOutput(REGULARIZED, LABEL), (4, 3)),
    "two losses": (
        sym.Group([sym.SoftmaxOutput(FC, LABEL, name="softmax"), sym.MakeLoss(sym.square(FC))]),
        (4,),
    ),
}


def states(graph: Graph) -> set[str]:
    return {t.name for t in graph.tensors if t.role in (Role.PARAMETER, Role.STATE) and t.alias is not None}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_scale_leaves_what_is_learned_as_it_is(loss: str, evaluate: Evaluate) -> None:
    """To the bit: a power of two changes exponents alone."""
    symbol, label = LOSSES[loss]
    shapes = {"data": (4, 6)} | ({"softmax_label": label} if label else {})
    plain, scaled = (training_graph(symbol, shapes, dtype="float64", loss_scale=s) for s in (1.0, SCALE))
    validate(scaled)
    rng = np.random.default_rng(3)
    values = {t.name: rng.uniform(0.2, 0.8, t.shape) for t in plain.tensors if t.role.persistent}
    if label == (4,):
        values["softmax_label"] = np.array([0.0, 1.0, 2.0, 1.0])
    expected, found = evaluate(plain, values), evaluate(scaled, values)
    assert len(states(plain)) == 4
    for name in states(plain):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    gradient = expected["grad(fc_weight)"]
    assert np.abs(gradient).max() > 0
    np.testing.assert_array_equal(found["grad(fc_weight)"], SCALE * gradient)


def test_gradients_that_are_fed_are_scaled_too(evaluate: Evaluate) -> None:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")
    optimizer = sgd(momentum=0, rescale=1.0)
    found = []
    for scale in (1.0, SCALE):
        graph = training_graph(
            net, {"data": (4, 5)}, optimizer, heads=True, dtype="float64", loss_scale=scale
        )
        found.append(evaluate(graph, fed(graph)))
    np.testing.assert_array_equal(found[0]["updated(fc_weight)"], found[1]["updated(fc_weight)"])
    np.testing.assert_array_equal(SCALE * found[0]["grad(fc_weight)"], found[1]["grad(fc_weight)"])


def test_gradients_that_are_read_are_divided_by_it(evaluate: Evaluate) -> None:
    found = []
    for scale in (1.0, SCALE):
        with NameScope():
            graph = gradient_graph(
                sym.Group([perceptron(), sym.square(sym.Variable("other"), name="free")]),
                SHAPES | {"other": (3,)},
                dtype="float64",
                loss_scale=scale,
            )
        validate(graph)
        values = evaluate(graph, fed(graph))
        found.append([values[graph.tensors[index].name] for index in graph.outputs])
        assert "grad(fc1_weight)" in [graph.tensors[index].name for index in graph.outputs]
    for plain, scaled in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, scaled)
    narrow = gradient_graph(perceptron(), SHAPES, dtype="float16")
    assert {narrow.tensors[index].dtype for index in narrow.outputs} == {"float32"}, "and divided in float32"


def test_sums_over_micro_batches_are_divided_once(evaluate: Evaluate) -> None:
    found = []
    for scale in (1.0, SCALE):
        graph = training_graph(perceptron(), SHAPES, micro_batches=2, dtype="float64", loss_scale=scale)
        values = fed(graph) | {"micro_batch": np.zeros(1)}
        found.append(evaluate(graph, values)["updated(fc1_weight)"])
    np.testing.assert_array_equal(*found)


def test_float16_is_scaled_unless_told_otherwise() -> None:
    def rescale(**settings: object) -> float:
        graph = training_graph(perceptron(), SHAPES, sgd(momentum=0), **settings)  # type: ignore[arg-type]
        (update,) = (o for o in graph.operations if o.name == "update(fc1_bias)")
        text = str(update.bound.description)
        return next(scale for scale in (1.0, 8.0, 128.0) if f"value={0.25 / scale!r}" in text)

    assert rescale(dtype="float16") == 128
    assert rescale(dtype="float16", loss_scale=8) == 8
    assert rescale(dtype="bfloat16") == rescale() == rescale(loss_scale=1) == 1


def test_gradients_that_hand_the_scale_on_are_left_alone() -> None:
    shapes = {"data": (2, 3), "output_0": (2, 3)}
    gradient = registry.get("log_softmax").gradient({}, shapes)
    assert gradient is not None
    assert scaled_gradient(gradient, SCALE) is gradient
    penalty = registry.get("IdentityAttachKLSparseReg")
    added = penalty.gradient(penalty.attributes(), {"data": (2, 3), "moving_avg": (3,)})
    assert added is not None
    assert scaled_gradient(added, 1.0) is added
    assert scaled_gradient(added, SCALE).stages != added.stages


def test_a_rest_is_scaled_beside_padding_that_is_not_zero(stage: Callable[[str], Stage]) -> None:
    made = stage("def g(grad_0, data):\n    return lambda i=data.shape[0]: pad(grad_0[i - 1], 3) + data[i]")
    gradient = Gradient((made,), {"data": Produced(0, 0)})
    (changed,) = scaled_gradient(gradient, SCALE).stages
    head, data = np.arange(4.0), np.arange(4.0) ** 2
    shapes = {"grad_0": (4,), "data": (4,)}
    (plain,) = made.bind(shapes).compute({"grad_0": head, "data": data})
    (scaled,) = changed.bind(shapes).compute({"grad_0": SCALE * head, "data": data})
    np.testing.assert_array_equal(scaled, SCALE * plain)


def test_a_result_that_another_stage_reads_cannot_be_scaled(stage: Callable[[str], Stage]) -> None:
    first = stage("def first(data):\n    return lambda i: data[i]")
    second = stage("def second(output_0, data):\n    return lambda i: output_0[i] + data[i]")
    gradient = Gradient((first, second), {"data": Produced(0, 0), "other": Produced(1, 0)})
    with pytest.raises(GraphError, match="first makes a gradient that another stage reads"):
        scaled_gradient(gradient, SCALE)


@pytest.mark.parametrize("scale", [0, -1.0, float("inf"), float("nan")])
def test_a_scale_that_is_none_is_an_error(scale: float) -> None:
    with pytest.raises(GraphError, match="give a positive number such as 128"):
        training_graph(perceptron(), SHAPES, loss_scale=scale)
