"""The NumPy implementation of each operator and scalar function of the language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from ....errors import OperatorError
from ....tdl.arithmetic import ARITHMETIC, as_float, call
from ....tdl.ast import Reducer
from ....tdl.functions import FUNCTIONS
from ...kernels.kernel import Array
from .ir import Scalar
from .special import VECTORISED, sign


class Kind(Enum):
    """The types that a loop takes and returns."""

    NUMBER = "integers stay integers"
    FLOAT = "always floating point"
    COMPARISON = "numbers to truth values"
    LOGICAL = "truth values to truth values"


@dataclass(frozen=True, slots=True)
class Loop:
    """`run(*arguments, out=out)`; a ufunc may write over one of its arguments."""

    run: Callable[..., object]
    kind: Kind
    ufunc: bool = True


_SYMBOLS = {
    "+": Loop(np.add, Kind.NUMBER),
    "-": Loop(np.subtract, Kind.NUMBER),
    "*": Loop(np.multiply, Kind.NUMBER),
    "//": Loop(np.floor_divide, Kind.NUMBER),
    "%": Loop(np.remainder, Kind.NUMBER),
    "**": Loop(np.power, Kind.NUMBER),
    "/": Loop(np.divide, Kind.FLOAT),
    "<": Loop(np.less, Kind.COMPARISON),
    "<=": Loop(np.less_equal, Kind.COMPARISON),
    ">": Loop(np.greater, Kind.COMPARISON),
    ">=": Loop(np.greater_equal, Kind.COMPARISON),
    "==": Loop(np.equal, Kind.COMPARISON),
    "!=": Loop(np.not_equal, Kind.COMPARISON),
    "and": Loop(np.logical_and, Kind.LOGICAL),
    "or": Loop(np.logical_or, Kind.LOGICAL),
    "not": Loop(np.logical_not, Kind.LOGICAL),
}

_INTERNAL = {
    "negative": Loop(np.negative, Kind.NUMBER),
    "round": Loop(np.rint, Kind.NUMBER),
    "sign": Loop(sign, Kind.NUMBER, ufunc=False),
}

LOOPS = MappingProxyType(
    {
        name: Loop(function.implementation, Kind.NUMBER if function.integer else Kind.FLOAT)
        for name, function in FUNCTIONS.items()
        if isinstance(function.implementation, np.ufunc)
    }
    | _SYMBOLS
    | _INTERNAL
)

ROUNDING = frozenset({"floor", "ceil", "trunc", "round"})
"""Functions that leave integers as they are."""

COMBINE = MappingProxyType(
    {Reducer.SUM: "+", Reducer.PROD: "*", Reducer.MAX: "maximum", Reducer.MIN: "minimum"}
)
"""The function of two values that each reducer repeats."""


def identity(reducer: Reducer) -> Scalar:
    """Return what an empty reduction gives."""
    match reducer:
        case Reducer.SUM:
            return 0
        case Reducer.PROD:
            return 1
        case Reducer.MAX:
            return -np.inf
        case Reducer.MIN:
            return np.inf


def is_costly(function: str) -> bool:
    """Return whether a function takes many times as long as a multiplication."""
    return function != "where" and loop(function).kind is Kind.FLOAT and function not in ("/", "sqrt")


def loop(function: str) -> Loop:
    """Return the loop of an operator or function. Raises `OperatorError` if there is none."""
    if (known := LOOPS.get(function)) is not None:
        return known
    if (scalar := FUNCTIONS.get(function)) is None:
        raise OperatorError(f"no kernel can be derived: {function!r} is not a scalar function")
    if (vectorised := VECTORISED.get(function)) is not None:
        evaluate = vectorised()
        return Loop(evaluate, Kind.FLOAT, ufunc=isinstance(evaluate, np.ufunc))
    evaluate = scalar.implementation

    def run(*arguments: Array, out: Array) -> None:
        np.copyto(out, evaluate(*arguments), casting="same_kind")

    return Loop(run, Kind.FLOAT, ufunc=False)


def fold(function: str, values: Sequence[Scalar]) -> Scalar:
    """Return a function of constants, as the interpreter gives it; an integer beyond 64 bits as a float."""
    match function, values:
        case "where", (condition, x, y):
            return x if condition else y
        case "not", (value,):
            return not value
        case "negative", (value,):
            return -value
    with np.errstate(all="ignore"):
        if function not in ARITHMETIC:
            return call(function, values)
        result = ARITHMETIC[function](*values)
    if loop(function).kind in (Kind.COMPARISON, Kind.LOGICAL):
        return bool(result)
    return result if isinstance(result, int) and result.bit_length() < 64 else as_float(result)
