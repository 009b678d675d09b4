"""Compiled integer expressions, one setting at a time and in bulk, against SymPy's own substitution."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.analyzer.indices.evaluate import MAX_MAGNITUDE, Linear, compile_integers, value_at
from tofu.analyzer.indices.formula import ZERO, Formula, floor_quotient, greatest, integer, least, symbol
from tofu.analyzer.indices.symbolic import symbolic

X, Y, N = symbol("x"), symbol("y"), symbol("n")


@pytest.mark.parametrize(
    "expression",
    [
        integer(7),
        X,
        2 * X - 3 * Y + 5,
        X * N + Y,
        floor_quotient(X + 3 * Y, integer(4)) + 1,
        floor_quotient(X, N) * N,
        greatest(X, Y, N),
        least(X, 2 * Y) - greatest(ZERO, X - N),
        (X + 1) ** 3,
        N**2 * X,
        -X,
    ],
)
def test_values(expression: Formula) -> None:
    program = compile_integers([expression, expression + X], [X, Y, N])
    settings = [(3, 4, 2), (0, 0, 1), (-5, 7, 3), (10, -2, 4)]
    names = [symbolic(each) for each in (X, Y, N)]
    expected = [int(symbolic(expression).subs(dict(zip(names, at, strict=True)))) for at in settings]
    assert [value_at(expression, dict(zip((X, Y, N), at, strict=True))) for at in settings] == expected
    assert [program.integers(at)[0] for at in settings] == expected
    assert [program.integers(at)[1] for at in settings] == [
        e + at[0] for e, at in zip(expected, settings, strict=True)
    ]
    for at, value in zip(settings, expected, strict=True):
        rows = program.bind(2, at[2:])(np.array([at[:2]] * 3))
        assert rows.dtype == np.int64
        assert rows.tolist() == [[value, value + at[0]]] * 3
    assert program.bind(2, (2,))(np.zeros((0, 2), np.int64)).shape == (0, 2)


def test_linear_expressions_need_no_steps() -> None:
    program = compile_integers([2 * X - N + 5, integer(4)], [X, Y, N])
    assert program.steps == ()
    assert program.rows == (Linear(5, ((0, 2), (2, -1))), Linear(4, ()))
    assert program.matrix.tolist() == [[2, 0], [0, 0], [-1, 0]]


def test_equal_parts_are_computed_once() -> None:
    quotient = floor_quotient(X + Y, integer(3))
    once = compile_integers([quotient * N], [X, Y, N])
    twice = compile_integers([quotient * N, quotient * N, quotient], [X, Y, N])
    assert len(once.steps) == len(twice.steps)


def test_a_quotient_by_nothing_is_nothing() -> None:
    program = compile_integers([floor_quotient(X, N)], [X, N])
    assert program.integers((5, 0)) == [0]
    assert program.bind(1, (0,))(np.array([[5], [6]])).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("expression", "value", "fits"),
    [
        (X * X, 2**30, True),
        (X * X, 2**31, False),
        (X * X, -(2**31), False),
        (X * X - X * X * X, 2**21, False),
        (X + 1, MAX_MAGNITUDE - 2, True),
        (X + 1, MAX_MAGNITUDE - 1, False),
        (X + MAX_MAGNITUDE, 0, False),
        (MAX_MAGNITUDE * X, 0, False),
        (floor_quotient(X * MAX_MAGNITUDE, N), 0, False),
    ],
)
def test_what_fits_into_64_bits(expression: Formula, value: int, fits: bool) -> None:
    assert compile_integers([expression], [X, N]).fits((value, 1)) is fits


def test_nothing_fits() -> None:
    assert compile_integers([], []).fits(())
