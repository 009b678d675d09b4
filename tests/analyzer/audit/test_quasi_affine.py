"""Bounds as isl has them take the values that SymPy gives them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

isl = pytest.importorskip("islpy")

from tofu.analyzer.audit.quasi_affine import InexpressibleError, Terms  # noqa: E402
from tofu.analyzer.indices.formula import (  # noqa: E402
    ONE,
    Formula,
    floor_quotient,
    greatest,
    integer,
    least,
    symbol,
)
from tofu.analyzer.indices.symbolic import symbolic  # noqa: E402

X, Y = symbol("x"), symbol("y")

EXPRESSIONS = [
    integer(-3),
    X,
    X - Y,
    2 * X + 3 * Y - 5,
    -X,
    floor_quotient(X - 2 * Y, integer(3)),
    3 * floor_quotient(X, integer(4)) + 1,
    greatest(X, Y, ONE),
    least(X, 2 * Y) + Y,
    greatest(X - Y, floor_quotient(Y, integer(2))),
]


def fixed(terms: Terms, values: Any, **at: int) -> Any:
    """The values at one point."""
    for name, value in at.items():
        values &= terms(symbol(name)).eq_set(terms.number(value))
    return values


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values(expression: Formula) -> None:
    terms = Terms()
    translated = terms(expression)
    for x, y in product(range(-4, 5), repeat=2):
        value = int(symbolic(expression).subs({symbolic(X): x, symbolic(Y): y}))
        assert not fixed(terms, translated.eq_set(terms.number(value)), x=x, y=y).is_empty()
        assert fixed(terms, translated.lt_set(terms.number(value)), x=x, y=y).is_empty()
        assert fixed(terms, translated.gt_set(terms.number(value)), x=x, y=y).is_empty()


def test_a_switch_may_multiply_what_varies() -> None:
    """`least(1, x) * y` is 0 or y for a quotient x, which is not negative, and nothing below."""
    terms = Terms()
    switched = terms(least(ONE, X) * Y)
    for x, y in product(range(4), range(-3, 4)):
        same = switched.eq_set(terms.number(y if x else 0))
        assert not fixed(terms, same, x=x, y=y).is_empty()
    assert fixed(terms, switched.domain(), x=-1).is_empty()


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (X * Y, "a product of two quantities that depend on shapes or indices"),
        (floor_quotient(X, Y), "a quotient by y"),
        (X**2, "a product of two quantities that depend on shapes or indices"),
    ],
)
def test_what_isl_cannot_say(expression: Formula, said: str) -> None:
    with pytest.raises(InexpressibleError) as caught:
        Terms()(expression)
    assert str(caught.value) == said


def test_equal_expressions_are_translated_once() -> None:
    terms = Terms()
    assert terms(X + Y) is terms(Y + X)
    assert terms(X + Y) is not terms(X - Y)


def test_some_values_may_exist() -> None:
    terms = Terms()
    between = terms(X).lt_set(terms(Y)) & terms(Y).lt_set(terms.number(3)) & terms(X).ge_set(terms.number(0))
    some = terms.without(between, [Y, symbol("z")])
    assert some.is_equal(terms(X).ge_set(terms.number(0)) & terms(X).lt_set(terms.number(2)))
    assert terms.without(between, []).is_equal(between)


def test_examples_are_the_smallest_values() -> None:
    terms = Terms()
    values = terms(X).gt_set(terms.number(2)) & terms(Y).ge_set(terms(X))
    assert terms.example(values) == "x = 3, y = 3"


def test_all_values_and_none() -> None:
    terms = Terms()
    assert terms.nothing().is_empty()
    assert (terms.everything() - terms(X).le_set(terms.number(0))).is_equal(terms(X).gt_set(terms.number(0)))
