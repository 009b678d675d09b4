"""Opaque functions that bring their gradients: differences, strategies, training over workers, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.training import training_graph
from tofu.errors import DataError, OperatorError, TofuError
from tofu.operators.operator import Operator
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

Array = npt.NDArray[Any]

INVERSE = tofu.Differentiable(np.linalg.inv, lambda head, result, m: -result.T @ head @ result.T)
BY_DESCRIPTION = tofu.Differentiable(
    np.linalg.inv,
    tofu.parse("""
def inverse_gradient(grad_0, output_0):
    part = lambda k, j: Sum(lambda i: output_0[i, k] * grad_0[i, j])
    return lambda k, i: -Sum(lambda j: part[k, j] * output_0[i, j])
"""),
)
SOLVE = tofu.Differentiable(
    np.linalg.solve,
    lambda head, result, a, b: -np.outer(np.linalg.solve(a.T, head), result),
    lambda head, result, a, b: np.linalg.solve(a.T, head),
)
INVERSES = """
def f(m):
    inverse = Opaque()
    return lambda b, i, j: inverse(m[b, :, :])[i, j]
"""
SCALED = """
def f(m, w):
    inverse = Opaque()
    part = lambda b, i, j: inverse(m[b, :, :])[i, j]
    return lambda b, i: Sum(lambda j: part[b, i, j] * w[j])
"""
SOLUTIONS = """
def f(a, b):
    solve = Opaque()
    return lambda n, i=b.shape[1]: solve(a[:, :], b[n, :])[i]
"""
GATHERED = """
def f(x, row):
    softmax = Opaque()
    return lambda b, c=2, i=4: softmax(x[row[b], :])[i]
"""
SOFTMAX = tofu.Differentiable(
    lambda x: np.exp(x) / np.exp(x).sum(), lambda head, result, x: result * (head - (head * result).sum())
)


def _matrices(*shape: int) -> Array:
    array: Array = np.random.default_rng(1).normal(size=shape) + 3 * np.eye(shape[-1])
    return array


@pytest.mark.parametrize(
    ("text", "opaque", "tensors"),
    [
        (INVERSES, {"inverse": INVERSE}, {"m": _matrices(2, 3, 3)}),
        (INVERSES, {"inverse": BY_DESCRIPTION}, {"m": _matrices(2, 3, 3)}),
        (SCALED, {"inverse": INVERSE}, {"m": _matrices(2, 3, 3), "w": np.arange(1.0, 4.0)}),
        (SOLUTIONS, {"solve": SOLVE}, {"a": _matrices(3, 3), "b": np.arange(6.0).reshape(2, 3)}),
        (GATHERED, {"softmax": SOFTMAX}, {"x": _matrices(4, 4), "row": np.array([0.0, 3, 3])}),
    ],
)
def test_gradients_are_differences(
    text: str, opaque: Mapping[str, tofu.Differentiable], tensors: Mapping[str, Array]
) -> None:
    operator = tofu.parse(text, opaque=opaque)
    bound = operator.bind({name: array.shape for name, array in tensors.items()})
    head = np.random.default_rng(2).normal(size=bound.output_shapes[0])
    found = operator.gradients(tensors, [head])
    for name in tensors.keys() - {"row"}:
        expected = np.zeros_like(tensors[name])
        for place in np.ndindex(expected.shape):
            step = np.zeros_like(expected)
            step[place] = 1e-6
            up, down = (bound.compute({**tensors, name: tensors[name] + sign * step})[0] for sign in (1, -1))
            expected[place] = ((up - down) * head).sum() / 2e-6
        np.testing.assert_allclose(found[name], expected, atol=1e-7)


def test_a_gradient_is_split_along_what_is_not_sliced() -> None:
    operator = tofu.parse(SOLUTIONS, opaque={"solve": SOLVE})
    shapes = {"a": (3, 3), "b": (4, 3)}
    kinds = [
        [
            (split.variable, str(split.kind))
            for split in term.stage.bind({**shapes, "grad_0": (4, 3), "output_0": (4, 3)}).strategies
        ]
        for term in operator.gradient_terms(shapes)
    ]
    assert kinds == [[("n", "reduce")], [("n", "concat")]]


def test_a_gradient_of_zero_has_no_stage() -> None:
    fixed = tofu.Differentiable(SOLVE.function, None, SOLVE.gradients[1])
    operator = tofu.parse(SOLUTIONS, opaque={"solve": fixed})
    assert [term.tensor for term in operator.gradient_terms({"a": (3, 3), "b": (2, 3)})] == ["b"]


def test_several_workers_train_as_one_does() -> None:
    inverse = tofu.parse(INVERSES, opaque={"inverse": INVERSE})
    squares = (
        "def squares(x, label):\n    return lambda b: Sum(lambda i, j: (x[b, i, j] - label[b, i, j]) ** 2)"
    )
    made = sym.apply(inverse, sym.Variable("m_weight", shape=(4, 3, 3)), name="inverse")
    loss = sym.MakeLoss(sym.apply(tofu.parse(squares), made, sym.Variable("label"), name="loss"))
    shapes = {"label": (4, 3, 3)}
    graph = training_graph(loss, shapes, sgd(momentum=0), dtype="float64")
    trained = [_trained(graph, workers) for workers in (1, 2, 4)]
    assert not np.allclose(trained[0], _matrices(4, 3, 3))
    np.testing.assert_allclose(trained[1], trained[0], rtol=1e-12)
    np.testing.assert_allclose(trained[2], trained[0], rtol=1e-12)


def _trained(graph: Graph, workers: int) -> Array:
    """Return the weights after two iterations."""
    plan = partition(graph, workers)
    with Executor(lower(graph, plan)) as executor:
        for tensor in graph.tensors:
            if tensor.role is Role.SCALAR:
                executor.write(tensor.name, np.full(tensor.shape, 0.1))
        executor.write("m_weight", _matrices(4, 3, 3))
        executor.write("label", np.zeros((4, 3, 3)))
        for _ in range(2):
            executor.run()
        return np.array(executor.read("m_weight"))


def _operator(opaque: tofu.Differentiable, text: str = INVERSES) -> Operator:
    return tofu.parse(text, opaque={"inverse": opaque})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (INVERSES.replace("inverse(m", "2 * inverse(m"), "known for a stage that only calls it"),
        (
            INVERSES.replace("b, i, j:", "b, j=m.shape[2], i=m.shape[1]:"),
            "known for a stage that only calls it",
        ),
        (
            INVERSES.replace("b, i, j:", "b=1, i, j:").replace("m[b,", "m[2 * b,"),
            "read the tensor in a stage",
        ),
        (
            INVERSES.replace("m[b, :, :])", "m[b, :, :], m[b, :, :])"),
            "takes 2 arguments, but has 1 gradient",
        ),
    ],
)
def test_calls_without_a_derived_gradient_say_what_to_do(text: str, reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        _operator(INVERSE, text).gradient_terms({"m": (2, 3, 3)})


def test_a_function_without_a_gradient_says_how_to_give_one() -> None:
    operator = tofu.parse(INVERSES, opaque={"inverse": np.linalg.inv})
    with pytest.raises(
        OperatorError, match=r"opaque=\{'inverse': tofu.Differentiable\(function, gradient\)\}"
    ):
        operator.gradient_terms({"m": (2, 3, 3)})


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        (lambda head, result, m: head[0], r"argument 0 has shape \(3,\), and the argument \(3, 3\)"),
        (tofu.parse("def g(grad_0, m):\n    return lambda i, j: grad_0[i, j] * m[i, j]"), "not 'm'"),
        (
            tofu.parse("def g(grad_0):\n    return lambda i, j: grad_0[i, j], lambda i, j: -grad_0[i, j]"),
            "has 2",
        ),
        (lambda head, result, m: 1 / 0, "'inverse_gradient_0' raises ZeroDivisionError"),
    ],
)
def test_wrong_gradients_are_refused(gradient: Any, reason: str) -> None:
    operator = _operator(tofu.Differentiable(np.linalg.inv, gradient))
    with pytest.raises(TofuError, match=reason):
        operator.gradients({"m": _matrices(2, 3, 3)}, [np.ones((2, 3, 3))])


def test_what_is_not_a_function_is_refused() -> None:
    for values, reason in (
        ((1, np.abs), "takes a function, found 1"),
        ((tofu.parse(INVERSES), np.abs), "takes a function, found <operator f>"),
        ((np.abs,), "needs a gradient for each argument"),
        ((np.abs, 3), "found 3"),
    ):
        with pytest.raises(OperatorError, match=reason):
            tofu.Differentiable(*values)  # type: ignore[arg-type]


def test_names_of_gradients_are_new() -> None:
    text = """
def f(m, inverse_gradient_0):
    inverse = Opaque()
    part = lambda b, i, j: inverse(m[b, :, :])[i, j]
    return lambda b, i, j: part[b, i, j] * inverse_gradient_0[i]
"""
    tensors = {"m": _matrices(2, 3, 3), "inverse_gradient_0": np.ones(3)}
    found = _operator(INVERSE, text).gradients(tensors, [np.ones((2, 3, 3))])["m"]
    same = _operator(INVERSE).gradients({"m": tensors["m"]}, [np.ones((2, 3, 3))])["m"]
    np.testing.assert_allclose(found, same)


def test_a_wrong_number_of_slices_is_refused_when_called() -> None:
    text = INVERSES.replace("m[b, :, :])", "m[b, :, :], m[b, :, :])")
    with pytest.raises((OperatorError, DataError), match="takes 2 arguments, but has 1"):
        _operator(INVERSE, text).bind({"m": (2, 3, 3)}).compute({"m": _matrices(2, 3, 3)})
