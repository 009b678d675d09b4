from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tofu import GraphError, OperatorError, ShapeError
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Phase, Role
from tofu.dataflow.micro_batches import unrolled
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import OPTIMIZERS, Optimizer, adam, sgd
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import gradient_graph, inference_graph, training_graph
from tofu.dataflow.validate import validate

Array = npt.NDArray[np.float64]
Evaluate = Callable[[Graph, Mapping[str, Array]], dict[str, Array]]
SHAPES = {"data": (4, 6), "softmax_label": (4,)}


def perceptron() -> Symbol:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=5, name="fc1")
    body = sym.Activation(body, act_type="relu", name="relu1")
    body = sym.FullyConnected(body, num_hidden=3, name="fc2")
    return sym.SoftmaxOutput(body, name="softmax")


def fed(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    values = {
        tensor.name: rng.normal(size=tensor.shape)
        for tensor in graph.tensors
        if tensor.role.persistent and tensor.alias is None
    }
    for name in values:
        if name.startswith(("var(", "bn_moving_var")):
            values[name] = np.abs(values[name])
    return {**values, "softmax_label": np.array([0.0, 1.0, 2.0, 1.0]), "learning_rate": np.array([0.1])}


def test_a_training_graph_is_valid_and_holds_all_roles() -> None:
    graph = training_graph(perceptron(), SHAPES)
    validate(graph)
    roles: dict[Role, set[str]] = {}
    for tensor in graph.tensors:
        if tensor.alias is None:
            roles.setdefault(tensor.role, set()).add(tensor.name)
    weights = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    assert roles[Role.DATA] == {"data", "softmax_label"}
    assert roles[Role.PARAMETER] == weights
    assert roles[Role.STATE] == {f"mom({name})" for name in weights}
    assert roles[Role.SCALAR] == {"learning_rate"}
    assert [graph.tensors[index].name for index in graph.outputs] == ["softmax_output"]
    updated = {graph.tensors[t.alias].name for t in graph.tensors if t.alias is not None}
    assert updated == weights | {f"mom({name})" for name in weights}


def test_without_data_gradients_are_not_divided_by_a_batch(evaluate: Evaluate) -> None:
    loss = sym.MakeLoss(sym.sum(2 * sym.Variable("w", shape=(3,))), name="loss")
    graph = training_graph(loss, {}, sgd(momentum=0))
    results = evaluate(graph, {"w": np.ones(3), "learning_rate": np.array([0.5])})
    (updated,) = (tensor.name for tensor in graph.tensors if tensor.alias is not None)
    np.testing.assert_array_equal(results[updated], [0, 0, 0])


def test_updates_come_as_early_as_they_can() -> None:
    graph = training_graph(perceptron(), SHAPES)
    phases = [operation.phase for operation in graph.operations]
    first_update = phases.index(Phase.UPDATE)
    assert Phase.BACKWARD in phases[first_update:], "fc2 is updated before fc1 is differentiated"
    for operation in graph.operations:
        if operation.phase is Phase.UPDATE:
            before = graph.operations[operation.index - 1]
            waits = set(operation.inputs) | {graph.tensors[o].alias for o in operation.outputs}
            assert before.phase is Phase.UPDATE or waits & {*before.inputs, *before.outputs}


def test_momentum_against_the_formula(evaluate: Evaluate) -> None:
    optimizer = sgd(momentum=0.9, weight_decay=0.01, rescale=0.25)
    graph = training_graph(perceptron(), SHAPES, optimizer, dtype="float64")
    inputs = fed(graph)
    results = evaluate(graph, inputs)
    gradients = evaluate(gradient_graph(perceptron(), SHAPES, dtype="float64"), inputs)
    for name, decay in (("fc1_weight", 0.01), ("fc2_weight", 0.01), ("fc1_bias", 0.0)):
        gradient = 0.25 * gradients[f"grad({name})"] + decay * inputs[name]
        momentum = 0.9 * inputs[f"mom({name})"] - 0.1 * gradient
        np.testing.assert_allclose(results[f"updated(mom({name}))"], momentum, rtol=1e-12)
        np.testing.assert_allclose(results[f"updated({name})"], inputs[name] + momentum, rtol=1e-12)


def test_multipliers_scale_the_rate_and_the_decay(evaluate: Evaluate) -> None:
    """Those of the optimizer go before those of variables."""
    optimizer = Optimizer("sgd_update", {}, 0.5, 1.0, {"fc_bias": 3.0}, {"fc_bias": 2.0})
    with NameScope():
        weight = sym.Variable("w", lr_mult=0.25, wd_mult=4)
        fc = sym.FullyConnected(sym.Variable("data"), weight, num_hidden=3, name="fc", attr={"lr_mult": "9"})
        net = sym.SoftmaxOutput(fc, name="softmax")
    shapes = {"data": (4, 5), "softmax_label": (4,)}
    graph = training_graph(net, shapes, optimizer, dtype="float64")
    validate(graph)
    inputs = fed(graph)
    results = evaluate(graph, inputs)
    gradients = evaluate(gradient_graph(net, shapes, dtype="float64"), inputs)
    for name, rate, decay in (("w", 0.025, 2.0), ("fc_bias", 0.3, 1.0)):
        step = gradients[f"grad({name})"] + decay * inputs[name]
        np.testing.assert_allclose(results[f"updated({name})"], inputs[name] - rate * step, rtol=1e-12)


def test_gradients_of_outputs_that_are_no_losses_can_be_fed(evaluate: Evaluate) -> None:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")
    graph = training_graph(net, {"data": (4, 5)}, sgd(momentum=0, rescale=1.0), heads=True, dtype="float64")
    inputs = fed(graph)
    expected = inputs["fc_weight"] - 0.1 * inputs["head(fc_output)"].T @ inputs["data"]
    np.testing.assert_allclose(evaluate(graph, inputs)["updated(fc_weight)"], expected, rtol=1e-12)


def test_plain_descent_has_no_state(evaluate: Evaluate) -> None:
    graph = training_graph(perceptron(), SHAPES, sgd(momentum=0), dtype="float64")
    assert not any(tensor.role is Role.STATE for tensor in graph.tensors)
    inputs = fed(graph)
    results = evaluate(graph, inputs)
    gradients = evaluate(gradient_graph(perceptron(), SHAPES, dtype="float64"), inputs)
    expected = inputs["fc1_weight"] - 0.1 * gradients["grad(fc1_weight)"] / 4
    np.testing.assert_allclose(results["updated(fc1_weight)"], expected, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_updates_all_parameters(name: str) -> None:
    graph = training_graph(perceptron(), SHAPES, name)
    updated = {graph.tensors[tensor.alias].name for tensor in graph.tensors if tensor.alias is not None}
    kept = [tensor for tensor in graph.tensors if tensor.alias is None]
    parameters = {tensor.name for tensor in kept if tensor.role is Role.PARAMETER}
    assert parameters <= updated


def test_adam_against_the_formula(evaluate: Evaluate) -> None:
    graph = training_graph(perceptron(), SHAPES, adam(), dtype="float64")
    validate(graph)
    inputs = fed(graph)
    results = evaluate(graph, inputs)
    gradients = evaluate(gradient_graph(perceptron(), SHAPES, dtype="float64"), inputs)
    gradient = gradients["grad(fc1_weight)"] / 4
    mean = 0.9 * inputs["mean(fc1_weight)"] + 0.1 * gradient
    variance = 0.999 * inputs["var(fc1_weight)"] + 0.001 * gradient**2
    expected = inputs["fc1_weight"] - 0.1 * mean / (np.sqrt(variance) + 1e-8)
    np.testing.assert_allclose(results["updated(fc1_weight)"], expected, rtol=1e-10)


def test_moving_statistics(evaluate: Evaluate) -> None:
    body = sym.BatchNorm(sym.Variable("data"), fix_gamma=False, momentum=0.9, name="bn")
    net = sym.SoftmaxOutput(sym.FullyConnected(body, num_hidden=3, name="fc"), name="softmax")
    graph = training_graph(net, SHAPES, dtype="float64")
    validate(graph)
    inputs = fed(graph)
    results = evaluate(graph, inputs)
    mean, variance = inputs["data"].mean(0), inputs["data"].var(0)
    np.testing.assert_allclose(
        results["updated(bn_moving_mean)"], 0.9 * inputs["bn_moving_mean"] + 0.1 * mean, rtol=1e-10
    )
    np.testing.assert_allclose(
        results["updated(bn_moving_var)"], 0.9 * inputs["bn_moving_var"] + 0.1 * variance, rtol=1e-10
    )
    inference = inference_graph(net, SHAPES, dtype="float64")
    validate(inference)
    assert not any(tensor.alias is not None for tensor in inference.tensors)
    normal = (inputs["data"] - inputs["bn_moving_mean"]) / np.sqrt(inputs["bn_moving_var"] + 1e-3)
    scores = (normal * inputs["bn_gamma"] + inputs["bn_beta"]) @ inputs["fc_weight"].T + inputs["fc_bias"]
    likely = np.exp(scores - scores.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    np.testing.assert_allclose(evaluate(inference, inputs)["softmax_output"], likely, rtol=1e-8)


def test_inference_drops_labels() -> None:
    graph = inference_graph(perceptron(), {"data": (4, 6)})
    validate(graph)
    assert "softmax_label" not in {tensor.name for tensor in graph.tensors}


def test_fixed_parameters_are_not_updated() -> None:
    graph = training_graph(perceptron(), SHAPES, fixed={"fc1_weight"})
    assert "updated(fc1_weight)" not in {tensor.name for tensor in graph.tensors}
    frozen = sym.FullyConnected(sym.Variable("data"), sym.Variable("w", lr_mult=0), num_hidden=3, name="fc")
    graph = training_graph(sym.SoftmaxOutput(frozen, name="softmax"), SHAPES)
    assert {t.name for t in graph.tensors if t.name.startswith("updated(")} == {
        "updated(fc_bias)", "updated(mom(fc_bias))",
    }  # fmt: skip


def twice_normalised() -> Symbol:
    """Return a network in which `first`, made first, is normalised after `second` in execution order."""
    state = {"moving_mean": sym.Variable("mean"), "moving_var": sym.Variable("var")}
    first = sym.BatchNorm(sym.Variable("data"), **state, momentum=0.5, name="first")
    second = sym.BatchNorm(sym.Variable("other"), **state, momentum=0.5, name="second")
    return sym.SoftmaxOutput(second - first, name="softmax")


def moved_twice(inputs: Mapping[str, Array]) -> Array:
    """Return the running mean after the updates of `first` and then `second`."""
    after = 0.5 * inputs["mean"] + 0.5 * inputs["data"].mean(0)
    return 0.5 * after + 0.5 * inputs["other"].mean(0)


def test_updates_of_a_shared_state_are_chained_in_the_order_of_the_calls(evaluate: Evaluate) -> None:
    shapes = {"data": (4, 3), "other": (4, 3), "softmax_label": (4,)}
    with NameScope():
        net = twice_normalised()
    for symbol in (net, sym.load_json(net.tojson())):
        graph = training_graph(symbol, shapes)
        validate(graph)
        inputs = fed(graph)
        np.testing.assert_allclose(evaluate(graph, inputs)["updated(mean)"], moved_twice(inputs), rtol=1e-5)


def test_updates_of_a_shared_state_are_chained_over_micro_batches(evaluate: Evaluate) -> None:
    shapes = {"data": (4, 3), "other": (4, 3), "softmax_label": (4,)}
    graph = unrolled(training_graph(twice_normalised(), shapes, micro_batches=2), 2)
    validate(graph)
    inputs = fed(graph)
    inputs |= {f"softmax_label@{number}": np.array([0.0, 1.0, 2.0, 1.0]) for number in range(2)}
    expected = inputs["mean"]
    for number in range(2):
        halves = {name: inputs[f"{name}@{number}"] for name in ("data", "other")}
        expected = moved_twice({"mean": expected, **halves})
    np.testing.assert_allclose(evaluate(graph, inputs)["updated(mean)"], expected, rtol=1e-5)


def test_what_cannot_be_trained() -> None:
    with pytest.raises(GraphError, match="nothing starts the backward pass: none of fc_output"):
        training_graph(sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc"), {"data": (2, 4)})
    with pytest.raises(ShapeError, match="give a shape for data"):
        training_graph(perceptron(), {"softmax_label": (4,)})
    with pytest.raises(OperatorError, match="no optimizer 'sgdd'; did you mean 'sgd'"):
        training_graph(perceptron(), SHAPES, "sgdd")
    with pytest.raises(GraphError, match=r"to be fixed: fc1_wait, which .* did you mean 'fc1_weight'"):
        training_graph(perceptron(), SHAPES, fixed=("fc1_wait",))
    with pytest.raises(GraphError, match=r"micro_batches is 0 .*an integer from 1 on"):
        training_graph(perceptron(), SHAPES, micro_batches=0)
    bad = sym.FullyConnected(sym.Variable("data"), sym.Variable("w", lr_mult="x"), num_hidden=3)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="__lr_mult__ of 'w' is 'x', expected a number"):
        training_graph(sym.SoftmaxOutput(bad, name="softmax"), SHAPES)
