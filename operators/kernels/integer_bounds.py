"""Bounds of the absolute values of integers that are computed from bounded ones, at most `INT64`.

Kernels compute integers in 64 bits, and descriptions compute them exactly. A bound of `INT64` says that a
result may not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tdl.ast import AnyReducer, Reducer

INT64 = 1 << 63


def combined(function: str, bounds: Sequence[int]) -> int:
    """Return the bound of what an operator or a function makes of integers, if that is an integer."""
    match function, bounds:
        case "+" | "-", (a, b):
            return min(a + b, INT64)
        case "*", (a, b):
            return min(a * b, INT64)
        case "**", (base, exponent):
            return _raised(base, exponent)
        case "square", (base,):
            return _raised(base, 2)
        case _:
            return min(max(bounds), INT64)


def reduced(reducer: AnyReducer, bound: int, terms: int) -> int:
    """Return the bound of a reduction. That of a reducer of a user's own is not known."""
    match reducer:
        case Reducer.SUM:
            return min(bound * terms, INT64)
        case Reducer.PROD:
            return _raised(bound, terms)
        case Reducer.MAX | Reducer.MIN:
            return min(bound, INT64)
        case _:
            return INT64


def _raised(base: int, exponent: int) -> int:
    return 1 if base < 2 else min(base ** min(exponent, 63), INT64)
