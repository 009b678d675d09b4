"""Evaluate operators, functions and reducers on numbers: exactly on integers, as NumPy does on floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import DataError
from .ast import Reducer
from .functions import FUNCTIONS

Scalar = int | float
Operation = Callable[[Scalar, Scalar], Scalar]

MAX_BITS = 1024
"""Powers of integers are exact up to this size. Larger ones are floats: `9 ** 99 ** 99` costs nothing."""


def call(function: str, arguments: Sequence[Scalar]) -> Scalar:
    """Return a scalar function of numbers. Raises DataError for an integer that does not fit 64 bits."""
    if function == "square":
        (base,) = arguments
        return ARITHMETIC["**"](base, 2)
    entry = FUNCTIONS[function]
    if entry.integer and all(isinstance(argument, int) for argument in arguments):
        try:
            return int(entry.implementation(*arguments))
        except OverflowError:
            raise DataError(f"{function} takes integers of 64 bits at most; an argument is larger") from None
    return float(entry.implementation(*map(as_float, arguments)))


def as_float(value: Scalar) -> float:
    """Return the nearest float; infinite for an integer beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _exact(integers: Callable[[int, int], int], floats: Callable[[float, float], Any]) -> Operation:
    """Exact for two integers, unless it divides by zero; a float otherwise."""

    def operate(a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            try:
                return integers(a, b)
            except ZeroDivisionError:
                pass
        return float(floats(as_float(a), as_float(b)))

    return operate


def _power(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int) and b >= 0 and a.bit_length() * b <= MAX_BITS:
        return int(a**b)
    return float(np.float_power(as_float(a), as_float(b)))


def _propagating(choose: Operation) -> Operation:
    """Return a choice between two values that NaN wins, as in NumPy."""

    def operate(a: Scalar, b: Scalar) -> Scalar:
        return math.nan if a != a or b != b else choose(a, b)

    return operate


ARITHMETIC: Mapping[str, Operation] = MappingProxyType(
    {
        "+": _exact(operator.add, operator.add),
        "-": _exact(operator.sub, operator.sub),
        "*": _exact(operator.mul, operator.mul),
        "/": lambda a, b: float(np.divide(as_float(a), as_float(b))),
        "//": _exact(operator.floordiv, np.floor_divide),
        "%": _exact(operator.mod, np.mod),
        "**": _power,
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
        "and": lambda a, b: int(bool(a) and bool(b)),
        "or": lambda a, b: int(bool(a) or bool(b)),
    }
)
"""The language's binary operators; truth values are 1 and 0."""

COMBINE: Mapping[Reducer, Operation] = MappingProxyType(
    {
        Reducer.SUM: ARITHMETIC["+"],
        Reducer.PROD: ARITHMETIC["*"],
        Reducer.MAX: _propagating(max),
        Reducer.MIN: _propagating(min),
    }
)
"""How reducers combine two values."""
