"""Partial derivatives of the scalar functions, as syntax trees."""

from __future__ import annotations

from functools import cache

from .ast import Call, Expression
from .functions import FUNCTIONS
from .syntax.parser import parse_expression
from .traverse import substitute


def derivative(call: Call, argument: int) -> Expression | None:
    """Return the partial derivative of a call by one of its arguments.

    None if the language cannot express it.

    The function's own value appears as the call itself: `tanh(u)` gives `1 - tanh(u) * tanh(u)`.
    """
    text = FUNCTIONS[call.function].derivatives[argument]
    if not text:
        return None
    return substitute(_pattern(text), dict(zip("xyz", call.arguments, strict=False)) | {"f": call})


@cache
def _pattern(text: str) -> Expression:
    return parse_expression(text)
