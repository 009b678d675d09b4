"""Formulas against SymPy: values, text, and that equal ones are one object."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import sympy

from tofu.analyzer.indices.evaluate import value_at
from tofu.analyzer.indices.formula import Formula, floor_quotient, greatest, integer, least, symbol, total
from tofu.analyzer.indices.symbolic import symbolic

A, B = symbol("a", nonnegative=True), symbol("b")
KNOWN = {sympy.Symbol("a", integer=True, nonnegative=True): 7, sympy.Symbol("b", integer=True): -3}


def drawn(random: Random, depth: int) -> tuple[Formula, sympy.Expr]:
    """A formula, and what SymPy makes of the same operations."""
    if depth == 0:
        number = random.randint(-3, 3)
        return random.choice(((A, symbolic(A)), (B, symbolic(B)), (integer(number), sympy.Integer(number))))
    (left, one), (right, other) = drawn(random, depth - 1), drawn(random, depth - 1)
    number = random.randint(-3, 3)
    return random.choice(
        (
            (left + right, one + other),
            (left - right, one - other),
            (left * right, one * other),
            (number - left, number - one),
            (number * left, number * one),
            (left**2, one**2),
            (floor_quotient(left, integer(3)), sympy.floor(one / 3)),
            (least(left, right), sympy.Min(one, other)),
            (greatest(left, right), sympy.Max(one, other)),
        )
    )


@pytest.mark.parametrize("seed", range(60))
def test_arithmetic_agrees_with_sympy(seed: int) -> None:
    formula, expression = drawn(Random(seed), 3)
    expected = int(expression.subs(KNOWN))
    assert value_at(formula, {A: 7, B: -3}) == expected
    assert int(symbolic(formula).subs(KNOWN)) == expected
    assert all(coefficient for coefficient, _ in formula.terms)


def test_equal_formulas_are_one_object() -> None:
    assert A * B + 2 is 2 + B * A
    assert A + B - A is B
    assert (A + B) * (A - B) is (A - B) * (A + B)
    assert 2 * (A + 1) is A + A + 2
    assert (A + 1) * (A + 1) is (A + 1) ** 2
    assert total([A, -A]) is integer(0)
    assert symbol("b") is B
    assert symbol("b", nonnegative=True) is not B
    assert A**0 is integer(1)


def test_threads_make_one_object() -> None:
    for turn in range(50):
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _, turn=turn: symbol(f"t{turn}") * symbol("u") + turn, range(8)))
        assert all(each is made[0] for each in made)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (integer(-2), "-2"),
        (2 * A + 1, "2*a + 1"),
        (A * (A + B), "a*(a + b)"),
        ((A + 1) ** 2, "(a + 1)**2"),
        (floor_quotient(A + 1, B) * 2, "2*((a + 1) // b)"),
        (least(A, B), "Min(a, b)"),
        (greatest(B - 1, integer(0)), "Max(0, b - 1)"),
    ],
)
def test_text(formula: Formula, text: str) -> None:
    assert str(symbolic(formula)) == text
