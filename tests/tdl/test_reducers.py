"""Custom reducers: what they mean, how arrays are combined by them, and what is promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.tdl import ast
from tofu.tdl.functions import FUNCTIONS
from tofu.tdl.reducers import check_promise

LOG_SUM_EXP = "log(exp(a) + exp(b)), -inf"


def reducer(text: str) -> ast.CustomReducer:
    """The reducer of two variables a and b that `body, identity` declares."""
    description = tdl.parse(
        f"def f(x):\n    Fold = Reducer(lambda a, b: {text})\n    return lambda i: Fold(lambda k: x[i, k])"
    )
    (found,) = tdl.custom_reducers(description)
    return found


def folded(text: str, x: np.ndarray) -> np.ndarray:
    description = tdl.parse(
        f"def f(x):\n    Fold = Reducer(lambda a, b: {text})\n    return lambda i: Fold(lambda k: x[i, k])"
    )
    (result,) = tdl.interpret(description, {"i": x.shape[0], "k": x.shape[1]}, {"x": x}, {})
    return result


def test_terms_are_combined() -> None:
    x = np.random.default_rng(0).standard_normal((3, 5))
    np.testing.assert_allclose(folded(LOG_SUM_EXP, x), np.log(np.exp(x).sum(1)))


def test_nothing_gives_the_identity_and_one_term_itself() -> None:
    np.testing.assert_array_equal(folded(LOG_SUM_EXP, np.zeros((2, 0))), [-np.inf, -np.inf])
    np.testing.assert_array_equal(folded("a + b, 0", np.full((1, 1), 3.0)), [3])


def test_two_identities_are_the_identity_whatever_the_body_makes_of_them() -> None:
    text = "maximum(a, b) + log1p(exp(-abs(a - b))), -inf"
    x = np.array([[-np.inf, -np.inf, 1.0], [-np.inf, -np.inf, -np.inf], [0.0, -np.inf, 0.0]])
    expected = [1.0, -np.inf, np.log(2)]
    np.testing.assert_allclose(folded(text, x), expected)
    combine, total = tdl.combiner(reducer(text)), x[:, 0].copy()
    for column in x.T[1:]:
        combine(total, column, total)
    np.testing.assert_allclose(total, expected)


def test_integers_stay_exact() -> None:
    x = np.array([[2**61, 2**61 + 1, 1]])
    assert folded("a + b, 0", x).tolist() == [2**62 + 2]
    assert folded("a + b, 0", x).dtype == np.int64


def test_variables_may_be_named_like_indices() -> None:
    text = "def f(x):\n    F = Reducer(lambda i, k: i + k, 0)\n    return lambda i: F(lambda k: x[i, k] * i)"
    (result,) = tdl.interpret(tdl.parse(text), {"i": 2, "k": 3}, {"x": np.ones((2, 3))}, {})
    np.testing.assert_array_equal(result, [0, 3])


def test_declared_wherever_it_is_used() -> None:
    early = "def f(x):\n    F = Reducer(lambda a, b: a + b, 0)\n    s = lambda i: F(lambda k: x[i, k])\n"
    late = "def f(x):\n    s = lambda i: F(lambda k: x[i, k])\n    F = tofu.Reducer(lambda a, b: a + b, 0)\n"
    end = "    return lambda i: s[i] * 2"
    assert tdl.parse(early + end) == tdl.parse(late + end)


@pytest.mark.parametrize("name", list(ast.Reducer))
def test_reducers_of_the_language_combine(name: ast.Reducer) -> None:
    left, right = np.array([1.0, 5.0]), np.array([3.0, 2.0])
    expected = {"Sum": [4, 7], "Max": [3, 5], "Min": [1, 2], "Prod": [3, 10]}[name]
    tdl.combiner(name)(left, right, left)
    np.testing.assert_array_equal(left, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_are_combined_in_place_in_their_type(dtype: str) -> None:
    left, right = np.array([0.0, 1.0], dtype), np.array([2.0, -np.inf], dtype)
    tdl.combiner(reducer(LOG_SUM_EXP))(left, right, left)
    expected = np.logaddexp(np.array([0.0, 1.0]), np.array([2.0, -np.inf]))
    np.testing.assert_allclose(left, expected, rtol=1e-6 if dtype == "float32" else 1e-15)


BODIES = st.recursive(
    st.one_of(
        st.sampled_from([ast.Variable("a"), ast.Variable("b")]),
        st.sampled_from([-2.5, -1.0, 0.0, 1.0, 2.0, 3.0]).map(ast.Number),
    ),
    lambda inner: st.one_of(
        st.builds(ast.Unary, st.just("not"), inner),
        st.builds(ast.Unary, st.just("-"), st.sampled_from([ast.Variable("a"), ast.Variable("b")])),
        st.builds(
            ast.Binary,
            st.sampled_from(
                ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
            ),
            inner,
            inner,
        ),
        st.sampled_from(sorted(FUNCTIONS)).flatmap(
            lambda name: st.builds(ast.Call, st.just(name), st.tuples(*[inner] * FUNCTIONS[name].arity))
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(BODIES, st.floats(-3, 3, width=32), st.floats(-3, 3, width=32))
def test_combining_arrays_is_interpreting(body: ast.Expression, left: float, right: float) -> None:
    fold = ast.CustomReducer("Fold", "a", "b", body, 0)
    out = np.zeros(1)
    tdl.combiner(fold)(np.array([left]), np.array([right]), out)
    lambdas = (
        ast.Lambda((), ast.ReducerCall(fold, (ast.Binder("k"),), ast.Element("x", (ast.Variable("k"),)))),
    )
    description = ast.Description("f", (ast.TensorParameter("x"),), (), (), (), lambdas)
    x = np.array([left, right])
    (expected,) = tdl.interpret(description, {"k": 2}, {"x": x}, {})
    np.testing.assert_allclose(out[0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "a + b, 0",
        "a * b, 1",
        "maximum(a, b), -inf",
        "hypot(a, b), 0",
        "a + b - a * b, 0",
        "1 / (1 / a + 1 / b), inf",
        "(a + b) % 5, 0",
        "a != b, 0",
        "not (not a and not b), 0",
        LOG_SUM_EXP,
    ],
)
def test_laws_that_hold_where_they_are_used_are_believed(text: str) -> None:
    assert check_promise(reducer(text)) == []


def test_numbers_of_another_type_are_another_reducer() -> None:
    text = "def f(x):\n    F = Reducer(lambda a, b: a + b * {}, 0)\n    return lambda i: F(lambda k: x[i, k])"
    assert tdl.parse(text.format("1")) != tdl.parse(text.format("1.0"))


def test_numbers_that_are_equal_are_told_apart() -> None:
    numbers = [ast.Number(value) for value in (0, 0.0, -0.0, 1, 1.0)]
    assert len(set(numbers)) == len(numbers)
    assert ast.Number(1) == ast.Number(1)
    assert ast.Number(1) != 1
