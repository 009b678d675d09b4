"""The table of scalar functions: arities, values, and derivatives against finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.tdl import ast
from tofu.tdl.functions import FUNCTIONS

POINTS = {"arccosh": (1.3, 2.0, 4.5), "where": (0.0, 1.0, 3.0), "power": (0.4, 0.7, 2.5)}
POSITIVE = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "gamma", "gammaln", "digamma"})
SMOOTH = [
    (name, argument)
    for name, function in FUNCTIONS.items()
    for argument, text in enumerate(function.derivatives)
    if text and name not in ("floor", "ceil", "round", "trunc", "sign")
]


def evaluate(expression: ast.Expression, values: dict[str, float]) -> float:
    """An expression in `x`, `y`, `z`, by the interpreter."""

    def read(node: tdl.Node) -> tdl.Node:
        return ast.Element(node.name, (ast.Number(0),)) if isinstance(node, ast.Variable) else node

    output = ast.Lambda((), tdl.transform(expression, read))
    names = tuple(map(ast.TensorParameter, values))
    description = ast.Description("f", names, (), (), (), (output,))
    tensors = {name: np.array([value]) for name, value in values.items()}
    return float(tdl.interpret(description, {}, tensors, {})[0])


@pytest.mark.parametrize(("name", "argument"), SMOOTH)
@pytest.mark.parametrize("point", range(3))
def test_derivatives(name: str, argument: int, point: int) -> None:
    first = POINTS.get(name, (0.4, 1.7, 0.9) if name in POSITIVE else (0.4, -0.3, 0.7))[point]
    values = dict(zip("xyz", (first, 1.2, -0.8), strict=False))
    call = ast.Call(name, tuple(map(ast.Variable, "xyz"[: FUNCTIONS[name].arity])))
    derivative = tdl.derivative(call, argument)
    assert derivative is not None
    variable, step = "xyz"[argument], 1e-6
    if name == "where" and argument == 0:
        assert evaluate(derivative, values) == 0
        return
    above = evaluate(call, values | {variable: values[variable] + step})
    below = evaluate(call, values | {variable: values[variable] - step})
    np.testing.assert_allclose(
        evaluate(derivative, values), (above - below) / (2 * step), rtol=1e-7, atol=1e-9
    )


def test_the_value_itself_may_stand_in_a_derivative() -> None:
    call = tdl.parse_expression("tanh(2 * u)")
    assert isinstance(call, ast.Call)
    derivative = tdl.derivative(call, 0)
    assert derivative == tdl.parse_expression("1 - tanh(2 * u) * tanh(2 * u)")


def test_no_derivative_is_said_to_be_none() -> None:
    call = tdl.parse_expression("digamma(u)")
    assert isinstance(call, ast.Call)
    assert tdl.derivative(call, 0) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_keep_their_type_and_shape(name: str, kind: type) -> None:
    function = FUNCTIONS[name]
    arguments: list[np.ndarray[Any, Any]] = [np.full((2, 3), 0.5, kind)] * function.arity
    with np.errstate(all="ignore"):
        result = function.implementation(*arguments)
        assert function.implementation(*[np.zeros((0,), kind)] * function.arity).shape == (0,)
    assert result.dtype == kind
    assert result.shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("erf", 0.5, 0.5204998778130465),
        ("erfc", 6.0, 2.1519736712498913e-17),
        ("gamma", 5.0, 24.0),
        ("gamma", 1000.0, math.inf),
        ("gammaln", 10.0, math.log(362880)),
        ("gammaln", -1.0, math.inf),
        ("digamma", 1.0, -0.5772156649015329),
        ("digamma", 0.5, -1.9635100260214235),
        ("digamma", -0.5, 0.03648997397857652),
        ("gamma", 0.0, math.inf),
        ("gamma", -0.0, -math.inf),
        ("gamma", -5e-324, -math.inf),
        ("gamma", -1.0, math.nan),
        ("gamma", -math.inf, math.nan),
        ("gammaln", 0.0, math.inf),
        ("gammaln", -math.inf, -math.inf),
        ("digamma", 0.0, -math.inf),
        ("digamma", -0.0, math.inf),
        ("digamma", -1e-300, 1e300),
        ("digamma", -1.0 - 2.0**-51, 2.0**51),
        ("digamma", -1.0, math.nan),
        ("digamma", math.inf, math.inf),
        ("digamma", -math.inf, math.nan),
        ("sigmoid", 0.0, 0.5),
        ("sigmoid", -1000.0, 0.0),
        ("softplus", 1000.0, 1000.0),
        ("rsqrt", 4.0, 0.5),
        ("relu", -1.0, 0.0),
        ("reciprocal", 4, 0.25),
    ],
)
def test_values(name: str, value: float, expected: float) -> None:
    np.testing.assert_allclose(FUNCTIONS[name].implementation(value), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("x", [0.1, 0.9, 3.3, 12.5, -2.7])
def test_digamma_obeys_its_recurrence(x: float) -> None:
    digamma = FUNCTIONS["digamma"].implementation
    np.testing.assert_allclose(digamma(x + 1), digamma(x) + 1 / x, rtol=1e-12)


def test_power_of_integers() -> None:
    assert FUNCTIONS["power"].implementation(np.int64(2), -1) == 0.5


def test_random_numbers_are_spread_evenly_and_independent_of_the_type() -> None:
    uniform = FUNCTIONS["uniform"].implementation
    counters = np.arange(1 << 16)
    numbers = uniform(7, 0, counters)
    counts, _ = np.histogram(numbers, 64, (0, 1))
    assert 30 < ((counts - 1024) ** 2 / 1024).sum() < 110
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(numbers, uniform(8, 0, counters))[0, 1]) < 0.02
    assert abs(np.corrcoef(numbers, uniform(7, 1, counters))[0, 1]) < 0.02
    assert numbers.min() > 0
    assert numbers.max() < 1
    single = uniform(np.float32(7), np.float32(0), counters.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, numbers)
    assert uniform(7, 0, 5) == numbers[5]
