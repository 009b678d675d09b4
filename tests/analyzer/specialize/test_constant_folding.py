"""Folded nodes keep the place of the original ones, so that messages point there."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.analyzer.specialize.constant_folding import MAX_BITS, fold, fold_index
from tofu.tdl import ast
from tofu.tdl.traverse import transform


def folded(text: str) -> ast.Expression:
    return transform(tdl.parse_expression(text), fold)


NUMBERS = {
    "-2": -2,
    "not 0": 1,
    "not 2": 0,
    "1 + 2": 3,
    "2 < 1": 0,
    "1.5 * 2.5": 3.75,
    "1 and 0": 0,
    "1 and 2": 1,
    "0 or 0": 0,
    "0 or 2": 1,
    "x and 0": 0,
    "0 and x": 0,
    "x or 3": 1,
    "3 or x": 1,
    "maximum(1, 2)": 2,
    "minimum(1, 2)": 1,
    "2 ** 3": 8,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_keep_the_place_of_what_they_are_computed_from(text: str) -> None:
    found = folded(text)
    assert isinstance(found, ast.Number)
    assert (found.value, type(found.value)) == (NUMBERS[text], type(NUMBERS[text]))
    assert found.span == tdl.parse_expression(text).span


UNCHANGED = [
    "x * 0",
    "x + 0.0",
    "x * 1.0",
    "0 - x",
    "1 ** x",
    "1 / x",
    "x and 1",
    "0 or x",
    "1 // 0",
    "0.0 ** -1",
    "1e300 * 1e300",
    f"2 ** {MAX_BITS}",
    f"{2**MAX_BITS - 1} + 1",
    "maximum(x, 1)",
    "where(x, 1, 0)",
]
SAME = {
    "x + 0": "x",
    "0 + x": "x",
    "x - 0": "x",
    "x * 1": "x",
    "1 * x": "x",
    "x ** 1": "x",
    "-(-x)": "x",
    "x < y and 1": "x < y",
    "1 and not x": "not x",
    "0 or (x or y)": "x or y",
    "where(1, x, y)": "x",
    "Sum(lambda: x + 1)": "x + 1",
    "where(0, x, y)": "y",
    f"2 ** {MAX_BITS - 1}": str(2 ** (MAX_BITS - 1)),
    f"{2**MAX_BITS - 2} + 1": str(2**MAX_BITS - 1),
}


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_is_not_the_same_for_every_value_stays(text: str) -> None:
    assert folded(text) == tdl.parse_expression(text)


@pytest.mark.parametrize("text", SAME)
def test_what_is_the_same_for_every_value_goes(text: str) -> None:
    assert folded(text) == tdl.parse_expression(SAME[text])


INTEGERS = {
    "x // 1": "x",
    "floor(1.5)": "1",
    "ceil(1.5)": "2",
    "round(1.75)": "2",
    "trunc(-1.5)": "-1",
    "x + floor(0.5)": "x",
    "-floor(1.5)": "-1",
    "x // 2": "x // 2",
    "exp(0)": "exp(0)",
}


@pytest.mark.parametrize("text", INTEGERS)
def test_indices_are_integers(text: str) -> None:
    assert tdl.format_expression(fold_index(tdl.parse_expression(text))) == INTEGERS[text]


def test_rounded_numbers_keep_their_place() -> None:
    index = tdl.parse_expression("ceil(1.5)")
    assert fold_index(index).span == index.span


TENSORS = """
def op(x):
    solve = Opaque()
    return lambda b, i=floor(2.5), j=2: solve(x[b, :, :])[i // 1, j + floor(0.5)] + x[b, i // 1, j]
"""


def test_indices_and_extents_inside_expressions_are_folded_in_place() -> None:
    before = tdl.parse(TENSORS).outputs[0]
    after = transform(before, fold)
    text = "lambda b, i=2, j=2: solve(x[b, :, :])[i, j] + x[b, i, j]"
    assert isinstance(after, ast.Lambda)
    assert tdl.format_expression(after.body) == text.partition(": ")[2]
    assert [binder.span for binder in after.variables] == [binder.span for binder in before.variables]
    assert [tdl.format_expression(binder.extent) for binder in after.variables if binder.extent] == ["2", "2"]
    assert [part.span for part in tdl.children(after.body)] == [
        part.span for part in tdl.children(before.body)
    ]
