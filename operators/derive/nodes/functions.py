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
from .functions_beyond_numpy import VECTORISED, sign
from .ir import Scalar


class LoopTypes(Enum):
    """The types that a loop takes and returns."""

    NUMBER = "integers stay integers"
    FLOAT = "always floating point"
    COMPARISON = "numbers to truth values"
    LOGICAL = "truth values to truth values"


@dataclass(frozen=True, slots=True)
class ArrayLoop:
    """`run(*arguments, out=out)`; a ufunc may write over one of its arguments."""

    run: Callable[..., object]
    kind: LoopTypes
    ufunc: bool = True


_SYMBOLS = {
    "+": ArrayLoop(np.add, LoopTypes.NUMBER),
    "-": ArrayLoop(np.subtract, LoopTypes.NUMBER),
    "*": ArrayLoop(np.multiply, LoopTypes.NUMBER),
    "//": ArrayLoop(np.floor_divide, LoopTypes.NUMBER),
    "%": ArrayLoop(np.remainder, LoopTypes.NUMBER),
    "**": ArrayLoop(np.power, LoopTypes.NUMBER),
    "/": ArrayLoop(np.divide, LoopTypes.FLOAT),
    "<": ArrayLoop(np.less, LoopTypes.COMPARISON),
    "<=": ArrayLoop(np.less_equal, LoopTypes.COMPARISON),
    ">": ArrayLoop(np.greater, LoopTypes.COMPARISON),
    ">=": ArrayLoop(np.greater_equal, LoopTypes.COMPARISON),
    "==": ArrayLoop(np.equal, LoopTypes.COMPARISON),
    "!=": ArrayLoop(np.not_equal, LoopTypes.COMPARISON),
    "and": ArrayLoop(np.logical_and, LoopTypes.LOGICAL),
    "or": ArrayLoop(np.logical_or, LoopTypes.LOGICAL),
    "not": ArrayLoop(np.logical_not, LoopTypes.LOGICAL),
}

_INTERNAL = {
    "negative": ArrayLoop(np.negative, LoopTypes.NUMBER),
    "round": ArrayLoop(np.rint, LoopTypes.NUMBER),
    "sign": ArrayLoop(sign, LoopTypes.NUMBER, ufunc=False),
}

LOOPS = MappingProxyType(
    {
        name: ArrayLoop(function.implementation, LoopTypes.NUMBER if function.integer else LoopTypes.FLOAT)
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
    return function != "where" and loop(function).kind is LoopTypes.FLOAT and function not in ("/", "sqrt")


def loop(function: str) -> ArrayLoop:
    """Return the loop of an operator or function. Raises `OperatorError` if there is none."""
    if (known := LOOPS.get(function)) is not None:
        return known
    if (scalar := FUNCTIONS.get(function)) is None:
        raise OperatorError(f"no kernel can be derived: {function!r} is not a scalar function")
    if (vectorised := VECTORISED.get(function)) is not None:
        evaluate = vectorised()
        return ArrayLoop(evaluate, LoopTypes.FLOAT, ufunc=isinstance(evaluate, np.ufunc))
    evaluate = scalar.implementation

    def run(*arguments: Array, out: Array) -> None:
        np.copyto(out, evaluate(*arguments), casting="same_kind")

    return ArrayLoop(run, LoopTypes.FLOAT, ufunc=False)


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
    if loop(function).kind in (LoopTypes.COMPARISON, LoopTypes.LOGICAL):
        return bool(result)
    return result if isinstance(result, int) and result.bit_length() < 64 else as_float(result)
