"""Expressions of index variables alone, computed once at preparation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ....errors import OperatorError
from ....support.integers import Integers
from ...kernels.kernel import Array
from .affine import Ranges
from .functions import LoopTypes, loop
from .integer_range import fits
from .ir import Apply, Constant, Iota, Node

BOOL = np.dtype(np.bool_)
_PARTLY_EXACT: Mapping[str, Callable[[Array], Array]] = {
    "**": lambda exponent: np.less(exponent, 0),
    "//": lambda divisor: divisor == 0,
    "%": lambda divisor: divisor == 0,
}
"""The second arguments for which an operation has no integer result."""


def frozen(array: Array) -> Array:
    """Return the array, read-only from now on: its values are known at preparation."""
    array.flags.writeable = False
    return array


def iota(name: str, axes: Mapping[str, int], ranges: Ranges) -> Integers:
    """Return the values of an index variable along its axis."""
    shape = [1] * len(axes)
    shape[axes[name]] = -1
    return np.arange(*ranges[name], dtype=np.int64).reshape(shape)


def index_values(node: Node, axes: Mapping[str, int], ranges: Ranges) -> Array:
    """Return an expression of index variables and constants, in exact integers if it has them and they fit
    into 64 bits.
    """
    match node:
        case Constant(value=value):
            return np.full((1,) * len(axes), value)
        case Iota(variable=variable):
            return iota(variable, axes, ranges)
        case Apply(function=function, arguments=arguments):
            values = [index_values(argument, axes, ranges) for argument in arguments]
            if not fits(node, ranges):
                values = [value.astype(np.float64) for value in values]
            return evaluate(function, values)
        case _:
            raise OperatorError(f"{type(node).__name__} found in an expression of index variables only")


def evaluate(function: str, values: list[Array]) -> Array:
    """Return a function of integer arrays, in exact integers if the result has them."""
    if function == "where":
        return np.where(*values)
    entry = loop(function)
    if entry.kind in (LoopTypes.NUMBER, LoopTypes.COMPARISON):
        values = [value.astype(np.int64) if value.dtype == BOOL else value for value in values]
    if entry.kind is LoopTypes.FLOAT:
        values = [value.astype(np.float64) for value in values]
    if function in _PARTLY_EXACT and any(np.any(_PARTLY_EXACT[function](value)) for value in values[1:]):
        values = [value.astype(np.float64) for value in values]
    if isinstance(entry.run, np.ufunc):
        with np.errstate(all="ignore"):
            result: Array = np.asarray(entry.run(*values))
        return result
    result = np.empty(np.broadcast_shapes(*(value.shape for value in values)), np.float64)
    entry.run(*values, out=result)
    return result
