"""Symbolic interval analysis of index expressions (Tofu, section 4.2, with sound rules).

Figure 4 of the paper does not swap bounds under a negative factor or a subtraction. Here every rule
looks at signs, floor quotients use that floor is monotone, and the constants of both bounds are
independent. Bounds are formulas of the ends of index variables and the extents of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd
from typing import NamedTuple, assert_never

from .affine import (
    Absolute,
    Affine,
    Atom,
    IndexVariable,
    Minimum,
    Quotient,
    Remainder,
)
from .formula import ONE, ZERO, Formula, floor_quotient, greatest, integer, least, symbol, total
from .measures import sign


class Interval(NamedTuple):
    """First and last value, both inclusive."""

    first: Formula
    last: Formula


Ends = Callable[[str], Interval]


@cache
def lower_symbol(variable: str) -> Formula:
    """Return the lower end of an index variable's half-open interval."""
    return symbol(f"{variable}.lower")


@cache
def upper_symbol(variable: str) -> Formula:
    """Return the upper end of an index variable's half-open interval."""
    return symbol(f"{variable}.upper")


@cache
def value_symbol(variable: str) -> Formula:
    """Return one value of an index variable."""
    return symbol(f"{variable}.value")


def box_ends(variable: str) -> Interval:
    """Return ends of a variable in a box of the iteration space."""
    return Interval(lower_symbol(variable), upper_symbol(variable) - 1)


def bounds(form: Affine, ends: Ends = box_ends) -> Interval:
    """Return the interval of an index while its variables run through theirs; none of them may be empty.

    It always contains every value. It is exact if every variable occurs once, except under a remainder or an
    absolute value of an expression that moves in steps.
    """
    first, last = [form.constant], [form.constant]
    for coefficient, atom in form.terms:
        term = scaled(coefficient, _atom_bounds(atom, ends))
        first.append(term.first)
        last.append(term.last)
    return Interval(total(first), total(last))


def _atom_bounds(atom: Atom, ends: Ends) -> Interval:
    match atom:
        case IndexVariable(name):
            return ends(name)
        case Quotient(value, divisor):
            inner = bounds(value, ends)
            return Interval(floor_quotient(inner.first, divisor), floor_quotient(inner.last, divisor))
        case Remainder(value, divisor):
            return _remainder(value, divisor, bounds(value, ends))
        case Minimum(left, right):
            one, other = bounds(left, ends), bounds(right, ends)
            return Interval(least(one.first, other.first), least(one.last, other.last))
        case Absolute(value):
            inner = bounds(value, ends)
            return Interval(greatest(ZERO, inner.first, -inner.last), greatest(inner.last, -inner.first))
        case _:
            assert_never(atom)


def scaled(coefficient: Formula, interval: Interval) -> Interval:
    """Return the interval times a constant, whose sign may depend on shapes."""
    first, last = coefficient * interval.first, coefficient * interval.last
    if sign(coefficient).nonnegative:
        return Interval(first, last)
    if sign(coefficient).nonpositive:
        return Interval(last, first)
    return Interval(least(first, last), greatest(first, last))


def _remainder(value: Affine, divisor: Formula, inner: Interval) -> Interval:
    """Return remainders: exactly within one period of the divisor, else all that the value's
    steps can hit.
    """
    low, high = floor_quotient(inner.first, divisor), floor_quotient(inner.last, divisor)
    wraps = least(ONE, high - low)
    smallest, largest = ZERO, divisor - 1
    step = 1 if divisor.value is None else gcd(_step(value), divisor.value)
    if step > 1 and value.constant.value is not None:
        smallest = integer(value.constant.value % step)
        largest = divisor - step + smallest
    first, last = inner.first - divisor * low, inner.last - divisor * high
    return Interval(first + wraps * (smallest - first), last + wraps * (largest - last))


def _step(form: Affine) -> int:
    """Return the greatest common divisor of the coefficients; 1 if one of them depends on shapes."""
    numbers = [coefficient.value for coefficient, _ in form.terms]
    return gcd(*(1 if number is None else number for number in numbers))
