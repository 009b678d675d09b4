"""Printing then parsing is the identity; the text has no parenthesis too many."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.tdl import ast
from tofu.tdl.functions import FUNCTIONS

VARIABLES = st.sampled_from(["i", "j"]).map(ast.Variable)
NUMBERS = st.one_of(
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([float("inf"), float("-inf"), 3.141592653589793, -3.141592653589793]),
).map(ast.Number)
ATTRIBUTES = st.sampled_from([ast.Attribute("n"), ast.Attribute("k", 0), ast.Attribute("k", 1)])
EXTENTS = st.builds(ast.Extent, st.just("a"), st.integers(-2, 1))
CONSTANTS = st.one_of(st.integers(-9, 9).map(ast.Number), ATTRIBUTES, EXTENTS)


def affine() -> st.SearchStrategy[ast.Expression]:
    """Indices that the checker accepts."""
    return st.recursive(
        st.one_of(VARIABLES, CONSTANTS),
        lambda inner: st.one_of(
            st.builds(ast.Binary, st.sampled_from("+-"), inner, inner),
            st.builds(ast.Binary, st.just("*"), inner, CONSTANTS),
            st.builds(ast.Binary, st.sampled_from(["//", "%"]), inner, st.integers(1, 9).map(ast.Number)),
            st.builds(ast.Unary, st.just("-"), inner),
        ),
        max_leaves=5,
    )


ELEMENTS = st.builds(ast.Element, st.just("a"), st.tuples(affine(), affine()))


def grow(inner: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    nonzero = inner.filter(lambda node: not (isinstance(node, ast.Number) and node.value == 0))
    calls = st.sampled_from(sorted(FUNCTIONS)).flatmap(
        lambda name: st.builds(ast.Call, st.just(name), st.tuples(*[inner] * FUNCTIONS[name].arity))
    )
    operators = st.sampled_from(["+", "-", "*", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    return st.one_of(
        st.builds(ast.Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(ast.Binary, operators, inner, inner),
        st.builds(ast.Binary, st.sampled_from(["/", "//", "%"]), inner, nonzero),
        calls,
        st.builds(ast.Pad, ELEMENTS, inner),
    )


EXPRESSIONS = st.recursive(st.one_of(VARIABLES, NUMBERS, ATTRIBUTES, EXTENTS, ELEMENTS), grow, max_leaves=12)
CUSTOM = [
    ast.CustomReducer(f"fold{number}", "u", "v", tdl.parse_expression(text), identity)
    for number, (text, identity) in enumerate(
        [
            ("u + v", 0),
            ("-(-u - v)", 0.0),
            ("log(exp(u) + exp(v))", -math.inf),
            ("u + v - u * v", 0),
            ("where(u <= v or not v == u, v, u) * 0 + minimum(u, v)", math.inf),
        ]
    )
]
REDUCERS = st.sampled_from([*ast.Reducer, *CUSTOM])


def described(body: ast.Expression) -> ast.Description:
    used = ast.Element("a", (ast.Variable("i"), ast.Variable("j")))
    outputs = ast.Lambda((ast.Binder("i"), ast.Binder("j")), ast.Binary("+", used, body))
    attributes = (ast.AttributeParameter("n", 2), ast.AttributeParameter("k", (1, 2.5)))
    return ast.Description("f", (ast.TensorParameter("a"),), attributes, (), (), (outputs,))


@given(EXPRESSIONS)
@settings(max_examples=300)
def test_print_then_parse_is_identity(body: ast.Expression) -> None:
    description = described(body)
    assert tdl.parse(tdl.format(description)) == description


@given(EXPRESSIONS, REDUCERS, REDUCERS)
@settings(max_examples=50)
def test_print_then_parse_is_identity_under_reducers(
    body: ast.Expression, outer: ast.AnyReducer, inner: ast.AnyReducer
) -> None:
    nested = ast.ReducerCall(
        outer,
        (ast.Binder("m", ast.Number(3)),),
        ast.ReducerCall(
            inner, (ast.Binder("o", ast.Extent("a", 0)), ast.Binder("p", ast.Attribute("n"))), body
        ),
    )
    description = described(ast.Binary("-", nested, body))
    assert tdl.parse(tdl.format(description)) == description


@pytest.mark.parametrize(
    "text",
    [
        "def f(a):\n    return lambda i: a[i]\n",
        "def f(a, *, n, flag=True, k=(3,), e=(), s=-1.5, t=inf):\n    return lambda i: a[i + n]\n",
        "def make(*, n):\n    return lambda i=n: i\n",
        "def f(a):\n    return lambda: a[()] + Sum(lambda: 1)\n",
        "def f(a):\n    return lambda n, *i: a[n, *i] + Sum(lambda *k: a[*k])\n",
        "def f(m):\n    C = Opaque()\n    return lambda b, i, j: C(m[b, :, :])[i, j]\n",
        (
            "def f(x):\n    C = Opaque()\n    Fold = Reducer(lambda a, b: maximum(a, b) * 1.0, -inf)\n"
            "    top = lambda i: Fold(lambda k: x[i, k])\n    return lambda i: C(x[i, :])[i] - top[i]\n"
        ),
        "def f(a):\n    return lambda i: (a[i] + 1) * 2 - (3 - i) / (i / 2) + 2 ** (i + 1) - (-1) ** i\n",
        "def f(a):\n    return lambda i: -(a[i] + 1) + -a[i] - -(1) + --i\n",
        "def f(a):\n    return lambda i: not (a[i] and i) or (i or 1) and not i == 2 and (i < 1) < 2\n",
        "def f(a):\n    return lambda i: pad(a[i - 1], -inf) + where(i > 0, pi, a.shape[-1])\n",
        (
            "def f(a):\n    b = lambda i: a[i] * 2\n    return (\n        lambda i: b[i],\n"
            "        lambda i: b[i] + 1,\n    )\n"
        ),
    ],
)
def test_canonical_text_is_kept(text: str) -> None:
    assert tdl.format(tdl.parse(text)) == text


def test_parentheses_that_mean_nothing_go() -> None:
    text = "def f(a): return lambda i: ((a[(i)]) + ((2 * (i)) + (-(i)))) - (1)"
    assert tdl.format(tdl.parse(text)) == "def f(a):\n    return lambda i: a[i] + (2 * i + -i) - 1\n"


def test_format_expression() -> None:
    assert tdl.format_expression(tdl.parse_expression("(x+y)*z")) == "(x + y) * z"
