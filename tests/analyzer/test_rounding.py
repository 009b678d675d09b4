"""Error bounds of every construct, against bounds worked out by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tofu.analyzer.bind.bound import Bound
from tofu.errors import OperatorError
from tofu.tdl.functions import FUNCTIONS

from .rounding import propagate
from .running_error import MONOTONE, Bounded

UNIT = 2.0**-10
"""Coarse, so that whole numbers soon stop fitting: 1024 is the last that does."""
INF = math.inf

Bind = Callable[..., Bound]
Figures = tuple[Sequence[float], Sequence[float]]


def gamma(count: int) -> float:
    """Return the relative change of a value by `count` roundings at most."""
    return count * UNIT / (1 - count * UNIT)


def rounded(value: float, error: float, count: int = 1) -> float:
    return error + gamma(count) * (abs(value) + error)


def bounds(bind: Bind, text: str, **tensors: tuple[object, object]) -> tuple[Bounded, ...]:
    given = {
        name: Bounded(np.asarray(value, np.float64), np.asarray(error, np.float64))
        for name, (value, error) in tensors.items()
    }
    bound = bind(text, {name: bounded.value.shape for name, bounded in given.items()})
    return propagate(bound, given, UNIT)


def one(bind: Bind, text: str, **tensors: tuple[object, object]) -> tuple[object, object]:
    """The only output, as lists."""
    (result,) = bounds(bind, text, **tensors)
    assert result.value.shape == result.error.shape
    return result.value.tolist(), result.error.tolist()


def pointwise(bind: Bind, body: str, **tensors: tuple[float, float]) -> tuple[float, float]:
    """Value and error of a body in which `x` and `y` stand for elements."""
    names = ", ".join(tensors)
    for name in tensors:
        body = re.sub(rf"\b{name}\b", f"{name}[i]", body)
    given = {name: ([value], [error]) for name, (value, error) in tensors.items()}
    value, error = one(bind, f"def op({names}):\n    return lambda i: {body}", **given)
    return value[0], error[0]  # type: ignore[index]


BINARY = {
    "sum": ("x + y", (0.5, 0.125), (0.25, 0.25), 0.75, rounded(0.75, 0.375)),
    "sum of whole numbers": ("x + y", (2, 0), (3, 0), 5, 0),
    "sum that just fits": ("x + y", (1023, 0), (1, 0), 1024, 0),
    "sum that does not fit": ("x + y", (1024, 0), (1, 0), 1025, rounded(1025, 0)),
    "whole sum of parts": ("x + y", (0.5, 0), (0.5, 0), 1, rounded(1, 0)),
    "part and whole": ("x + y", (0.5, 0), (1, 0), 1.5, rounded(1.5, 0)),
    "whole and part": ("x + y", (1, 0), (0.5, 0), 1.5, rounded(1.5, 0)),
    "whole numbers, computed": ("x + y", (1, 0.5), (2, 0), 3, rounded(3, 0.5)),
    "difference": ("x - y", (0.5, 0.125), (2.75, 0.25), -2.25, rounded(-2.25, 0.375)),
    "product": ("x * y", (-0.5, 0.25), (-3, 0.5), 1.5, rounded(1.5, 0.25 + 0.75 + 0.125)),
    "product with an exact factor": ("x * y", (-0.5, 0), (-3, 0.5), 1.5, rounded(1.5, 0.25)),
    "quotient": ("x / y", (3, 0.25), (-2, 0.5), -1.5, rounded(-1.5, (0.25 + 0.75) / 1.5)),
    "quotient of exact values": ("x / y", (3, 0), (-2, 0), -1.5, rounded(-1.5, 0)),
    "quotient, dividend computed": ("x / y", (3, 0.25), (2, 0), 1.5, rounded(1.5, 0.125)),
    "quotient, divisor computed": ("x / y", (3, 0), (2, 0.5), 1.5, rounded(1.5, 0.5)),
    "quotient, small divisor": ("x / y", (3, 0), (0.5, 0.25), 6, rounded(6, 6)),
    "quotient, divisor maybe zero": ("x / y", (3, 0), (0.5, 0.5), 6, INF),
    "floor of a quotient": ("x // y", (-7, 0), (2, 0), -4, 0),
    "remainder": ("x % y", (-7, 0), (4, 0), 1, 0),
    "power": ("x ** y", (3, 0.5), (2, 0), 9, rounded(9, 3.25, 8)),
    "power of a negative value": ("x ** y", (-3, 0.5), (2, 0), 9, rounded(9, 3.25, 8)),
    "power of what may be zero": ("x ** y", (0.25, 0.5), (2, 0), 0.0625, rounded(0.0625, 0.5, 8)),
    "inverse": ("x ** y", (2, 1), (-1, 0), 0.5, rounded(0.5, 0.5, 8)),
    "inverse of what may be zero": ("x ** y", (0.25, 0.5), (-1, 0), 4, INF),
    "inverse of what is just zero": ("x ** y", (0.5, 0.5), (-1, 0), 2, INF),
    "power of an exact zero": ("x ** y", (0, 0), (0, 0), 1, rounded(1, 0, 8)),
    "both": ("x and y", (1, 0.25), (0, 0.5), 0, 0.5),
    "both, true": ("x and y", (1, 0.25), (1, 0), 1, 0.25),
    "either": ("x or y", (1, 0.25), (0, 0.5), 1, 0.5),
    "neither": ("x or y", (0, 0), (0, 0), 0, 0),
    "maximum": ("maximum(x, y)", (1, 0.25), (3, 0.125), 3, 0.25),
    "minimum": ("minimum(x, y)", (1, 0.25), (3, 0.5), 1, 0.5),
}


@pytest.mark.parametrize(("body", "x", "y", "value", "error"), BINARY.values(), ids=BINARY)
def test_two_operands(
    bind: Bind, body: str, x: tuple[float, float], y: tuple[float, float], value: float, error: float
) -> None:
    assert pointwise(bind, body, x=x, y=y) == (value, pytest.approx(error, rel=1e-12, abs=0))


UNARY = {
    "negation": ("-x", (3, 0.5), -3, 0.5),
    "not": ("not x", (0, 0), 1, 0),
    "not, certain": ("not x", (1, 0.5), 0, 0),
    "not, uncertain": ("not x", (0.5, 0.5), 0, 1),
    "not, uncertain below": ("not x", (-0.25, 0.5), 0, 1),
    "square": ("square(x)", (3, 0.5), 9, rounded(9, 3.25)),
    "absolute value": ("abs(x)", (-3, 0.5), 3, 0.5),
    "sign": ("sign(x)", (-3, 0.5), -1, 0),
    "sign, uncertain": ("sign(x)", (-0.5, 0.5), -1, 2),
    "sign of zero": ("sign(x)", (0, 0), 0, 0),
    "inverse root": ("rsqrt(x)", (2.5, 1.5), 2.5**-0.5, rounded(2.5**-0.5, 1 - 2.5**-0.5, 8)),
    "exponential": ("exp(x)", (0, 1), 1, rounded(1, math.e - 1, 8)),
    "logarithm, steeper below": ("log(x)", (2, 1), math.log(2), rounded(math.log(2), math.log(2), 8)),
    "root of what may be negative": ("sqrt(x)", (0.25, 0.5), 0.5, INF),
    "positive part": ("relu(x)", (0.25, 0.5), 0.25, rounded(0.25, 0.5, 8)),
    "tenth": ("x * 0 + 0.1", (1, 0), 0.1, rounded(0.1, UNIT * 0.1)),
    "negative tenth": ("x * 0 - 0.1", (1, 0), -0.1, rounded(0.1, UNIT * 0.1)),
    "half": ("x * 0 + 0.5", (1, 0), 0.5, rounded(0.5, 0)),
    "infinity": ("maximum(x, inf)", (1, 0), INF, 0),
    "counter": ("uniform(x, x, 0)", (1, 0.5), FUNCTIONS["uniform"].implementation(1.0, 1.0, 0.0), 0),
}


@pytest.mark.parametrize(("body", "x", "value", "error"), UNARY.values(), ids=UNARY)
def test_one_operand(bind: Bind, body: str, x: tuple[float, float], value: float, error: float) -> None:
    assert pointwise(bind, body, x=x) == (value, pytest.approx(error, rel=1e-12, abs=0))


@pytest.mark.parametrize("function", sorted(MONOTONE))
def test_monotone_functions_are_off_by_as_much_as_at_the_ends(bind: Bind, function: str) -> None:
    apply = FUNCTIONS[function].implementation
    middle = float(apply(2.0))
    reach = max(abs(float(apply(end)) - middle) for end in (1.5, 2.5))
    value, error = pointwise(bind, f"{function}(x)", x=(2.0, 0.5))
    assert (value, error) == (middle, pytest.approx(rounded(middle, reach, 8)))


@pytest.mark.parametrize(("x", "y"), [(1, 2), (2, 2), (3, 2)])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons(bind: Bind, operator: str, x: float, y: float) -> None:
    """They are exact of exact values, and of others until these may meet."""
    truth = float(eval(f"{x} {operator} {y}"))
    body = f"x {operator} y"
    assert pointwise(bind, body, x=(x, 0), y=(y, 0)) == (truth, 0)
    assert pointwise(bind, body, x=(x, 0.25), y=(y, 0.25)) == (truth, float(x == y))
    assert pointwise(bind, body, x=(x, 0.75), y=(y, 0.25)) == (truth, 1)
    assert pointwise(bind, body, x=(x, 0.25), y=(y, 0.75)) == (truth, 1)


@pytest.mark.parametrize("condition", [(1, 0), (0, 0), (1, 1), (0, 1)])
def test_either_branch_counts_where_the_condition_is_uncertain(
    bind: Bind, condition: tuple[float, float]
) -> None:
    truth, unsure = condition
    value, error = (2, 0.25) if truth else (5, 0.125)
    assert pointwise(bind, "where(c, x, y)", c=condition, x=(2, 0.25), y=(5, 0.125)) == (
        value,
        3.25 if unsure else error,
    )


REDUCTIONS = {
    "Sum": (-7.0, lambda: 0.75 + gamma(3 + 8) * (13 + 0.75)),
    "Max": (3.0, lambda: 0.5),
    "Min": (-8.0, lambda: 0.5),
    "Prod": (48.0, lambda: rounded(48, 3.5 * 8.25 * 2 - 48, 3)),
}


@pytest.mark.parametrize("reducer", REDUCTIONS)
def test_reductions(bind: Bind, reducer: str) -> None:
    """Of 3, -8 and -2, in rows of which the other holds nothing but zeros."""
    value, error = REDUCTIONS[reducer]
    text = f"def op(x):\n    return lambda i: {reducer}(lambda k: x[i, k])"
    values, errors = one(bind, text, x=([[3, -8, -2], [0, 0, 0]], [[0.5, 0.25, 0], [0, 0, 0]]))
    assert values == [value, 0]
    assert errors == [pytest.approx(error()), 0]


@pytest.mark.parametrize("reducer", ["Sum", "Prod"])
def test_reductions_count_the_terms_of_all_their_variables(bind: Bind, reducer: str) -> None:
    text = f"def op(x):\n    return lambda i: {reducer}(lambda j, k: x[j, i, k])"
    ((value,), (error,)) = one(bind, text, x=(np.ones((2, 1, 3)), np.zeros((2, 1, 3))))
    size, roundings = (6, 6 + 8) if reducer == "Sum" else (1, 6)
    assert (value, error) == (size, pytest.approx(gamma(roundings) * size))


def test_a_reduction_of_what_does_not_vary_counts_every_term(bind: Bind) -> None:
    text = "def op(x):\n    return lambda i: Sum(lambda k=4: x[i])"
    assert one(bind, text, x=([3.0], [0.5])) == ([12.0], [pytest.approx(2 + gamma(4 + 8) * 14)])


def test_elements_and_their_errors_follow_the_indices(bind: Bind) -> None:
    text = "def op(x):\n    return lambda j, i: -x[i, 2 - j]"
    value, error = one(bind, text, x=([[1, 2, 3], [4, 5, 6]], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]))
    assert value == [[-3, -6], [-2, -5], [-1, -4]]
    assert error == [[0.3, 0.6], [0.2, 0.5], [0.1, 0.4]]


def test_outside_an_axis_is_what_pads_it(bind: Bind) -> None:
    text = "def op(x):\n    return lambda i=5: pad(x[i - 1], 0.1)"
    value, error = one(bind, text, x=([1, 2, 3], [0.5, 0.25, 0.125]))
    assert value == [0.1, 1, 2, 3, 0.1]
    assert error == [pytest.approx(UNIT * 0.1), 0.5, 0.25, 0.125, pytest.approx(UNIT * 0.1)]


def test_variables_and_extents_are_exact_values(bind: Bind) -> None:
    text = "def op(x):\n    return lambda i, j: i * x.shape[0] + j - x.shape[1] + 0 * x[i, j]"
    assert one(bind, text, x=(np.ones((2, 3)), np.zeros((2, 3)))) == (
        [[-3, -2, -1], [-1, 0, 1]],
        [[0, 0, 0], [0, 0, 0]],
    )


def test_indices_may_be_read_but_not_computed(bind: Bind) -> None:
    text = "def op(x, at):\n    return lambda i: x[at[i]]"
    x, at = ([1, 2, 3], [0.5, 0.25, 0.125]), [2, 0]
    assert one(bind, text, x=x, at=(at, [0, 0])) == ([3, 1], [0.125, 0.5])
    with pytest.raises(OperatorError, match=r"^'op': an index depends on rounded values$"):
        one(bind, text, x=x, at=(at, [0, 0.5]))


def test_every_output_has_a_bound(bind: Bind) -> None:
    text = "def op(x):\n    return lambda i: -x[i], lambda i, j: x[j]"
    first, second = bounds(bind, text, x=([1, 2], [0.5, 0.25]))
    assert (first.value.tolist(), first.error.tolist()) == ([-1, -2], [0.5, 0.25])
    assert (second.value.tolist(), second.error.tolist()) == ([[1, 2]] * 2, [[0.5, 0.25]] * 2)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x // 2", "'//' of rounded values"),
        ("2 % x", "'%' of rounded values"),
        ("2 ** x", "'**' of rounded values"),
        ("tan(x)", "tan"),
    ],
)
def test_what_has_no_rule_is_said(bind: Bind, body: str, said: str) -> None:
    with pytest.raises(OperatorError) as caught:
        pointwise(bind, body, x=(1.0, 0.5))
    assert str(caught.value) == f"'op': no error bound is known for {said}"


def test_opaque_functions_have_no_rule(bind: Bind) -> None:
    text = "def op(x):\n    inverse = Opaque()\n    return lambda b, i, j: inverse(x[b, :, :])[i, j]"
    with pytest.raises(OperatorError, match=r"^'op': no error bound is known for OpaqueElement$"):
        one(bind, text, x=(np.ones((1, 2, 2)), np.zeros((1, 2, 2))))


def test_bounds_hold_in_float16(bind: Bind) -> None:
    """A softmax, a quotient of sums of rounded values, in a format of 11 digits."""
    text = "def op(x):\n    return lambda i, j: exp(x[i, j]) / Sum(lambda k: exp(x[i, k]))"
    x = np.random.default_rng(3).standard_normal((50, 7)).astype(np.float16)
    bound = bind(text, {"x": x.shape})
    (result,) = propagate(bound, {"x": Bounded.exact(x)}, 2.0**-11)
    exponentials = np.exp(x)
    computed = exponentials / exponentials.sum(1, keepdims=True, dtype=np.float16)
    assert computed.dtype == np.float16
    assert (np.abs(computed - result.value) <= result.error).all()
    assert result.error.max() < 0.1
