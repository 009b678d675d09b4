"""Find the exact range of an index whose symbolic bounds are too wide, by trying all values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import assert_never

import numpy as np

from .affine import (
    Absolute,
    Affine,
    IndexVariable,
    Minimum,
    Quotient,
    Remainder,
    extent_symbol,
    variables_of,
)
from .evaluate import IntegerProgram, compile_integers
from .formula import ZERO, Formula, floor_quotient, greatest, integer, least, total
from .intervals import Interval, bounds, value_symbol
from .region import Interval as Range
from .region import Shape

MAX_TRIALS = 2**22


def value_range(form: Affine, extents: Mapping[str, int], shapes: Mapping[str, Shape]) -> Range:
    """Return the half-open range of an index's values over the whole iteration space.

    The range is exact if the index has at most 2**22 combinations of values, else it is that of the symbolic
    bounds. No variable may have extent 0.
    """
    variables = tuple(dict.fromkeys(variables_of(form)))
    axes = [(tensor, axis) for tensor, shape in shapes.items() for axis in range(len(shape))]
    constants = [shapes[tensor][axis] for tensor, axis in axes]
    trailing = tuple(extent_symbol(tensor, axis) for tensor, axis in axes)
    trials = prod(extents[name] for name in variables)
    if trials > MAX_TRIALS:
        interval = bounds(form, lambda name: Interval(ZERO, integer(extents[name] - 1)))
        first, last = compile_integers(interval, trailing).integers(constants)
        return first, last + 1
    program = values_of((form,), variables, trailing)
    grid = np.indices(tuple(extents[name] for name in variables)).reshape(len(variables), trials).T
    values = program.bind(len(variables), constants)(grid)
    return int(values.min()), int(values.max()) + 1


@cache
def values_of(
    forms: tuple[Affine, ...], variables: tuple[str, ...], symbols: tuple[Formula, ...]
) -> IntegerProgram:
    """Return a program for indices. Its symbols are the values of the variables, then the `symbols`."""
    values = {name: value_symbol(name) for name in variables}
    return compile_integers([expression(form, values) for form in forms], [*values.values(), *symbols])


def expression(form: Affine, symbols: Mapping[str, Formula]) -> Formula:
    """Return a normal form as a formula of one symbol for each index variable."""
    parts = [form.constant]
    for coefficient, atom in form.terms:
        match atom:
            case IndexVariable(name):
                parts.append(coefficient * symbols[name])
            case Quotient(value, divisor):
                parts.append(coefficient * floor_quotient(expression(value, symbols), divisor))
            case Remainder(value, divisor):
                inner = expression(value, symbols)
                parts.append(coefficient * (inner - divisor * floor_quotient(inner, divisor)))
            case Minimum(left, right):
                parts.append(coefficient * least(expression(left, symbols), expression(right, symbols)))
            case Absolute(value):
                inner = expression(value, symbols)
                parts.append(coefficient * greatest(inner, -inner))
            case _:
                assert_never(atom)
    return total(parts)
