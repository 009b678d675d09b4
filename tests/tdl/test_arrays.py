"""Descriptions by whole arrays against the interpreter, which says what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu import tdl
from tofu.errors import TofuError
from tofu.tdl import arrays, ast
from tofu.tdl.arrays import UnsuitedError, evaluate

from .test_printer import CUSTOM

EXTENTS = {"i": 3, "j": 4, "k": 2, "l": 3}
RANDOM = np.random.default_rng(3)
TENSORS = {
    "a": RANDOM.integers(-4, 5, (3, 4)).astype(float),
    "row": RANDOM.integers(0, 3, 4).astype(float),
    "one": np.array(2.5),
}
SHAPES = {name: tensor.shape for name, tensor in TENSORS.items()}
VARIABLES = st.sampled_from("ij").map(ast.Variable)
NUMBERS = st.sampled_from([0, 1, 2, 3, 0.5, 2.5, -1]).map(ast.Number)
EXTENT = st.builds(ast.Extent, st.just("a"), st.integers(0, 1))


def index(names: str) -> st.SearchStrategy[ast.Expression]:
    """Whole numbers, most of them inside."""
    leaf = st.sampled_from(names).map(ast.Variable)
    number = st.integers(0, 3).map(ast.Number)
    return st.one_of(
        leaf,
        number,
        st.builds(ast.Binary, st.sampled_from("+-"), leaf, number),
        st.builds(ast.Binary, st.sampled_from(["//", "%"]), leaf, st.integers(1, 3).map(ast.Number)),
        st.builds(lambda at: ast.Element("row", (at,)), leaf),
    )


def leaves(names: str) -> st.SearchStrategy[ast.Expression]:
    element = st.builds(lambda *at: ast.Element("a", at), index(names), index(names))
    return st.one_of(
        st.sampled_from(names).map(ast.Variable),
        NUMBERS,
        EXTENT,
        st.just(ast.Element("one", ())),
        st.builds(ast.Element, st.just("a"), st.just((ast.Variable("i"), ast.Variable("j")))),
        st.builds(ast.Pad, element, NUMBERS),
    )


def grow(inner: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    functions = [
        "maximum",
        "minimum",
        "abs",
        "sign",
        "floor",
        "round",
        "square",
        "sqrt",
        "exp",
        "tanh",
        "relu",
    ]
    calls = st.sampled_from([*functions, "where", "sigmoid", "hypot", "power"]).flatmap(
        lambda name: st.builds(ast.Call, st.just(name), st.tuples(*[inner] * tdl.FUNCTIONS[name].arity))
    )
    operators = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
    return st.one_of(
        st.builds(ast.Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(ast.Binary, st.sampled_from(operators), inner, inner),
        calls,
    )


def expressions(names: str) -> st.SearchStrategy[ast.Expression]:
    return st.recursive(leaves(names), grow, max_leaves=8)


REDUCERS = st.sampled_from([*ast.Reducer, *CUSTOM])


@st.composite
def bodies(draw: st.DrawFn) -> ast.Expression:
    """An expression, or one of a reduction, or of a reduction of a reduction."""
    body = draw(expressions("ijkl"))
    inner = ast.ReducerCall(draw(REDUCERS), (ast.Binder("l"),), body)
    nested = ast.Binary("+", inner, draw(expressions("ijk")))
    outer = ast.ReducerCall(draw(REDUCERS), (ast.Binder("k"),), nested)
    both = ast.ReducerCall(draw(REDUCERS), (ast.Binder("k"), ast.Binder("l")), body)
    return draw(st.sampled_from([ast.Binary("*", outer, draw(expressions("ij"))), both]))


def described(*outputs: ast.Lambda) -> ast.Description:
    return ast.Description("f", tuple(map(ast.TensorParameter, TENSORS)), (), (), (), outputs)


@settings(max_examples=150)
@given(bodies(), st.sampled_from([1, 7, 2**21]), st.data())
def test_whole_arrays_give_what_the_interpreter_gives(
    body: ast.Expression, block: int, data: st.DataObject
) -> None:
    description = described(ast.Lambda((ast.Binder("i"), ast.Binder("j")), body))
    box = {
        name: (first := data.draw(st.integers(0, extent - 1)), data.draw(st.integers(first + 1, extent)))
        for name, extent in EXTENTS.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_POINTS", block)
        try:
            (found,) = evaluate(description, box, TENSORS, SHAPES)
        except UnsuitedError:
            return
    try:
        (expected,) = tdl.interpret(description, EXTENTS, TENSORS, SHAPES, box=box)
    except TofuError as error:  # pragma: no cover
        raise AssertionError("the interpreter has no answer") from error
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


EXACT = {
    "conv": "Sum(lambda k=2, l=2: a[i + k, j + l] * a[k, l])",
    "mean": "Sum(lambda k: a[i, k] / 3) / a.shape[1]",
    "softmax": "exp(a[i, j] - Max(lambda k: a[i, k])) / Sum(lambda k: exp(a[i, k] - Max(lambda l: a[i, l])))",
    "gather": "a[row[j] // 1, j] + pad(a[i - 1, j], 0)",
}


@pytest.mark.parametrize("name", EXACT)
def test_sums_are_the_interpreters_to_the_last_bit(name: str) -> None:
    tensors = {"a": RANDOM.standard_normal((4, 5)), "row": np.array([0.0, 2, 1, 3, 0])}
    extents = {"i": 3, "j": 4, "k": 5 if "k," not in EXACT[name] else 2, "l": 2 if "k," in EXACT[name] else 5}
    text = f"def f(a, row):\n    return lambda i=3, j=4: {EXACT[name]} + 0 * row[0]"
    description = tdl.parse(text)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    (expected,) = tdl.interpret(description, extents, tensors, shapes)
    intervals = {name: (0, extent) for name, extent in extents.items()}
    (found,) = evaluate(description, intervals, tensors, shapes)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "body",
    [
        "a[i + 1, j]",
        "a[a[i, j], j]",
        "Max(lambda k=0: a[i, k])",
        "Sum(lambda k=0: a[i, k])",
        "i * 9007199254740993",
        "(i + 1) * 3037000500 * 3037000500",
        "(i + 2) ** (j + 60)",
        "square((i + 1) * 94906267)",
        "Sum(lambda k=4: 4503599627370496)",
        "Prod(lambda k=4: 100000000)",
    ],
)
def test_what_whole_arrays_cannot_say_is_left_to_the_interpreter(body: str) -> None:
    description = tdl.parse(f"def f(a):\n    return lambda i=3, j=4: {body} + 0 * a[0, 0]")
    intervals = {"i": (0, 3), "j": (0, 4), "k": (0, 0 if "k=0" in body else 4)}
    with pytest.raises(UnsuitedError):
        evaluate(description, intervals, {"a": TENSORS["a"]}, {"a": (3, 4)})


def test_an_index_that_is_not_whole_is_left_to_the_interpreter() -> None:
    description = tdl.parse("def f(a, at):\n    return lambda i, j: a[at[i], j]")
    tensors = {"a": TENSORS["a"], "at": np.array([0, 0.5, 1])}
    with pytest.raises(UnsuitedError, match="whole number"):
        evaluate(description, {"i": (0, 3), "j": (0, 4)}, tensors, {"a": (3, 4), "at": (3,)})


def test_opaque_functions_are_left_to_the_interpreter() -> None:
    description = tdl.parse("def f(a):\n    g = Opaque()\n    return lambda i, j: g(a[i, :])[j]")
    with pytest.raises(UnsuitedError):
        evaluate(description, {"i": (0, 3), "j": (0, 4)}, {"a": TENSORS["a"]}, {"a": (3, 4)})


def test_single_precision_is_computed_in_single_precision() -> None:
    description = tdl.parse("def f(a):\n    return lambda i, j: a[i, j] * 0.1 + exp(a[i, j] / 3)")
    a = TENSORS["a"]
    (found,) = evaluate(description, {"i": (0, 3), "j": (0, 4)}, {"a": a}, {"a": (3, 4)}, np.float32)
    single: Any = a.astype(np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, single * np.float32(0.1) + np.exp(single / np.float32(3)), rtol=1e-6)


def test_integers_stay_integers_if_all_tensors_are() -> None:
    description = tdl.parse("def f(a):\n    return lambda i, j: a[i, j] * 2 + i")
    whole = TENSORS["a"].astype(np.int32)
    (found,) = evaluate(description, {"i": (0, 3), "j": (0, 4)}, {"a": whole}, {"a": (3, 4)})
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, 2 * whole + np.arange(3)[:, None])
