"""Gradients against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tofu import GraphError, OperatorError, parse
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.rnn import LSTMCell
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import gradient_graph
from tofu.dataflow.validate import validate

Array = npt.NDArray[np.float64]
Evaluate = Callable[[Graph, Mapping[str, Array]], dict[str, Array]]
STEP = 1e-5
ELEMENTS = 16


def fed(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Random values for everything that lives across iterations."""
    rng = np.random.default_rng(seed)
    return {
        tensor.name: rng.uniform(0.2, 1.0, tensor.shape) * rng.choice((-1, 1), tensor.shape)
        for tensor in graph.tensors
        if tensor.role.persistent and tensor.alias is None
    }


def check(
    evaluate: Evaluate,
    net: Symbol,
    shapes: Mapping[str, tuple[int, ...]],
    wrt: list[str],
    loss: Callable[[Mapping[str, Array]], float] | None = None,
    values: Mapping[str, Array] | None = None,
) -> None:
    """Compare elements of every gradient; the loss defaults to the outputs weighted by their heads."""
    graph = gradient_graph(net, shapes, wrt, dtype="float64")
    validate(graph)
    inputs = {**fed(graph), **(values or {})}
    outputs = net.list_outputs()

    def value() -> float:
        results = evaluate(graph, inputs)
        if loss is not None:
            return loss(results)
        return sum(float((results[name] * inputs[f"head({name})"]).sum()) for name in outputs)

    results = evaluate(graph, inputs)
    for name in wrt:
        gradient = results[f"grad({name})"]
        assert gradient.shape == inputs[name].shape
        places = list(np.ndindex(gradient.shape))
        for index in np.random.default_rng(2).permutation(len(places))[:ELEMENTS]:
            place = places[index]
            original = inputs[name][place]
            inputs[name][place] = original + STEP
            above = value()
            inputs[name][place] = original - STEP
            expected = (above - value()) / (2 * STEP)
            inputs[name][place] = original
            assert gradient[place] == pytest.approx(expected, rel=1e-5, abs=1e-7), (name, place)


def cross_entropy(results: Mapping[str, Array]) -> float:
    rows = results["softmax_output"]
    labels = results["softmax_label"].astype(int)
    return -float(np.log(rows[np.arange(len(rows)), labels]).sum())


def test_a_perceptron(evaluate: Evaluate) -> None:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=5, name="fc1")
    body = sym.Activation(body, act_type="tanh", name="tanh1")
    body = sym.FullyConnected(body, num_hidden=3, name="fc2")
    net = sym.SoftmaxOutput(body, name="softmax")
    parameters = ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    labels = {"softmax_label": np.array([0.0, 2.0, 1.0, 2.0])}
    check(evaluate, net, {"data": (4, 6), "softmax_label": (4,)}, parameters, cross_entropy, labels)


def test_a_residual_block_with_normalisation_and_pooling(evaluate: Evaluate) -> None:
    data = sym.Variable("data")
    body = sym.Activation(sym.BatchNorm(data, fix_gamma=False, name="bn1"), act_type="relu", name="relu1")
    body = sym.Convolution(body, kernel=(3, 3), pad=(1, 1), num_filter=3, no_bias=True, name="conv1")
    body = sym.BatchNorm(body, fix_gamma=False, name="bn2")
    body = sym.Convolution(body, kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=3, name="conv2")
    short = sym.Convolution(data, kernel=(1, 1), stride=(2, 2), num_filter=3, no_bias=True, name="short")
    net = sym.Pooling(body + short, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    wrt = ["data", "bn1_gamma", "bn1_beta", "conv1_weight", "bn2_gamma", "bn2_beta", "conv2_weight",
           "conv2_bias", "short_weight"]  # fmt: skip
    check(evaluate, net, {"data": (2, 3, 8, 8)}, wrt)


def test_two_steps_of_an_lstm(evaluate: Evaluate) -> None:
    outputs, _ = LSTMCell(3, prefix="lstm_").unroll(2, sym.Variable("data"))
    assert isinstance(outputs, list)
    wrt = ["data", "lstm_i2h_weight", "lstm_i2h_bias", "lstm_h2h_weight", "lstm_h2h_bias"]
    check(evaluate, sym.Group(outputs), {"data": (2, 2, 4)}, wrt)


def test_average_pooling_and_flattening(evaluate: Evaluate) -> None:
    net = sym.Pooling(sym.Variable("data"), global_pool=True, kernel=(2, 2), pool_type="avg", name="pool")
    net = sym.FullyConnected(sym.Flatten(net, name="flat"), num_hidden=2, name="fc")
    check(evaluate, net, {"data": (2, 3, 4, 4)}, ["data", "fc_weight", "fc_bias"])


def test_an_embedding_with_a_softmax_over_every_step(evaluate: Evaluate) -> None:
    embedded = sym.Embedding(sym.Variable("data"), input_dim=5, output_dim=3, name="embed")
    rows = sym.Reshape(embedded, shape=(-1, 3), name="rows")
    scores = sym.FullyConnected(rows, num_hidden=4, name="pred")
    label = sym.Reshape(sym.Variable("labels"), shape=(-1,), name="flat")
    net = sym.SoftmaxOutput(scores, label, name="softmax")
    values = {
        "data": np.array([[0.0, 3.0, 3.0], [4.0, 1.0, 0.0]]),
        "labels": np.array([[0.0, 1, 2], [3, 1, 0]]),
    }

    def loss(results: Mapping[str, Array]) -> float:
        likely = results["softmax_output"]
        return -float(np.log(likely[np.arange(6), values["labels"].astype(int).ravel()]).sum())

    shapes = {"data": (2, 3), "labels": (2, 3)}
    check(evaluate, net, shapes, ["embed_weight", "pred_weight", "pred_bias"], loss, values)


def test_steps_merged_into_one_tensor(evaluate: Evaluate) -> None:
    merged, _ = LSTMCell(2, prefix="lstm_").unroll(2, sym.Variable("data"), merge_outputs=True)
    assert isinstance(merged, Symbol)
    check(evaluate, merged, {"data": (2, 2, 3)}, ["data", "lstm_i2h_weight"])


def test_a_long_chain(evaluate: Evaluate) -> None:
    with NameScope():
        body = sym.Variable("x")
        for _ in range(5000):
            body = body + 1
        graph = gradient_graph(body, {"x": (2,)}, ["x"])
    validate(graph)
    assert len(graph.operations) == 5001, "the additions hand the gradient through, one operation names it"


def test_a_tensor_read_several_times(evaluate: Evaluate) -> None:
    x = sym.Variable("x")
    net = x * x + sym.Activation(x, act_type="sigmoid", name="s") - x / sym.Variable("y")
    check(evaluate, net, {"x": (2, 3), "y": (2, 3)}, ["x", "y"])


def test_an_output_without_gradient_beside_one_that_has_it(evaluate: Evaluate) -> None:
    parts = sym.SliceChannel(sym.Variable("x"), num_outputs=3, name="parts")
    check(evaluate, parts[1] * 2, {"x": (2, 6)}, ["x"])


def test_an_output_that_is_also_read(evaluate: Evaluate) -> None:
    inner = sym.Activation(sym.Variable("x"), act_type="tanh", name="t")
    net = sym.Group([inner, inner * 3, sym.Activation(inner, act_type="sigmoid", name="s")])
    check(evaluate, net, {"x": (2, 3)}, ["x"])


def test_terms_are_summed_as_they_come_and_the_sum_has_the_name() -> None:
    x = sym.Variable("x")
    net = sym.Group([x + 1, x * 2, x - 3])
    graph = gradient_graph(net, {"x": (2,)}, ["x"])
    gradient = graph.tensors[graph.outputs[-1]]
    assert gradient.name == "grad(x)"
    assert gradient.role is Role.GRADIENT
    names = {tensor.name for tensor in graph.tensors if tensor.name.startswith("grad(x)")}
    assert names == {"grad(x)", "grad(x)#1", "grad(x)#2", "grad(x)#1..2", "grad(x)#3"}


def test_backward_operations_inherit_their_ties() -> None:
    outputs, _ = LSTMCell(3, prefix="lstm_").unroll(3, sym.Variable("data"))
    assert isinstance(outputs, list)
    graph = gradient_graph(outputs[-1], {"data": (2, 3, 4)})
    ties = {operation.name: operation.tie for operation in graph.operations}
    steps = [
        {
            name.removeprefix(f"lstm_t{time}_"): tie
            for name, tie in ties.items()
            if name.startswith(f"lstm_t{time}_")
        }
        for time in (1, 2)
    ]
    backward = [role for role in steps[0] if ".grad." in role]
    assert any(role.startswith("h2h.grad") for role in backward)
    assert None not in steps[0].values()
    assert all(steps[1].get(role, tie) == tie for role, tie in steps[0].items())
    assert all(role in steps[1] for role in backward if role.startswith(("h2h", "out", "gates")))
    sums = [o.tie for o in graph.operations if o.name.startswith("grad(lstm_h2h_weight).sum")]
    assert sums == ["lstm_h2h_weight.grad.sum"] * 2


def test_gradients_that_nothing_needs_are_not_made() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    graph = gradient_graph(net, {"data": (2, 4)})
    names = {tensor.name for tensor in graph.tensors}
    assert "grad(fc_weight)" in names
    assert "grad(data)" not in names


def test_a_blocked_gradient_is_left_out() -> None:
    x = sym.Variable("x")
    graph = gradient_graph(sym.BlockGrad(x) * sym.Variable("y"), {"x": (2,), "y": (2,)}, ["x", "y"])
    assert [graph.tensors[index].name for index in graph.outputs[1:]] == ["grad(y)"]


def test_nothing_behind_a_blocked_gradient_needs_an_adjoint() -> None:
    text = "def inverse(a):\n    F = Opaque()\n    return lambda b, i, j: F(a[b, :, :])[i, j]"
    inverse = parse(text, opaque={"F": np.linalg.inv})
    x, y = sym.Variable("x"), sym.Variable("y")
    shapes = {"x": (2, 3, 3), "y": (2, 3, 3)}
    with pytest.raises(OperatorError, match="inverse"):
        gradient_graph(sym.apply(inverse, x) * y, shapes, ["y", "x"])
    graph = gradient_graph(sym.apply(inverse, sym.BlockGrad(x)) * y, shapes, ["y", "x"])
    assert [graph.tensors[index].name for index in graph.outputs[1:]] == ["grad(y)"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(GraphError, match="gradients are wanted for z, which the symbol does not have"):
        gradient_graph(sym.Variable("x") + 1, {"x": (2,)}, ["z"])
