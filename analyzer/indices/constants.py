"""Constants of indices and extents: floor quotients, least and greatest values, and signs.

They are sympy expressions that stay as they stand. Sympy is not asked to simplify or to find signs, because
its time is exponential in the depth of nested quotients and extremes.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import sympy
from sympy.printing.str import StrPrinter


class FloorQuotient(sympy.Expr):  # type: ignore[misc]
    """`floor(value / divisor)`, with both as they stand.

    sympy's own floor of a quotient spreads the divisor over the terms of a sum. So the value would be another
    expression than the one that stands next to the quotient in a remainder, and every traversal of nested
    remainders would take a time exponential in their depth.
    """

    is_integer = True

    def __new__(cls, value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
        """Return the quotient, or a number if it is one. By an extent of zero it is zero, because then there
        is nothing to index.
        """
        if value.is_Integer and divisor.is_Integer:
            return sympy.Integer(int(value) // int(divisor) if divisor else 0)
        made: sympy.Expr = super().__new__(cls, value, divisor)
        return made

    def _eval_is_nonnegative(self) -> bool | None:
        value, divisor = self.args
        return True if value.is_nonnegative and divisor.is_nonnegative else None

    def _sympystr(self, printer: StrPrinter) -> str:
        value, divisor = map(printer.doprint, self.args)
        return f"(({value}) // ({divisor}))"


def floor_quotient(value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    """Return `floor(value / divisor)` unsimplified: sympy's simplification takes milliseconds."""
    return value if divisor == 1 else FloorQuotient(value, divisor)


def least(*values: sympy.Expr) -> sympy.Expr:
    """Return the least value, as it stands: sympy would order the values, in a time exponential in their
    depth.
    """
    if all(value.is_Integer for value in values):
        return sympy.Integer(min(map(int, values)))
    result: sympy.Expr = sympy.Basic.__new__(sympy.Min, *values)
    return result


def greatest(*values: sympy.Expr) -> sympy.Expr:
    """Return the greatest value, unsimplified as in `least`."""
    if all(value.is_Integer for value in values):
        return sympy.Integer(max(map(int, values)))
    result: sympy.Expr = sympy.Basic.__new__(sympy.Max, *values)
    return result


class Sign(NamedTuple):
    """Which signs a constant is known to have, whatever the extents are. Both hold for zero."""

    nonnegative: bool
    nonpositive: bool

    def times(self, other: Sign) -> Sign:
        """Return the sign of a product."""
        return Sign(
            (self.nonnegative and other.nonnegative) or (self.nonpositive and other.nonpositive),
            (self.nonnegative and other.nonpositive) or (self.nonpositive and other.nonnegative),
        )


def sign(number: sympy.Expr) -> Sign:
    """Return the sign of a constant. Parts that are shared are visited once."""
    return _sign(number, {})


def _sign(number: sympy.Expr, known: dict[int, Sign]) -> Sign:
    if id(number) not in known:
        known[id(number)] = _sign_from_parts(number, [_sign(part, known) for part in number.args])
    return known[id(number)]


def _sign_from_parts(number: sympy.Expr, parts: list[Sign]) -> Sign:
    up, down = [part.nonnegative for part in parts], [part.nonpositive for part in parts]
    match number:
        case sympy.Integer():
            return Sign(number >= 0, number <= 0)
        case sympy.Symbol():
            return Sign(bool(number.is_nonnegative), bool(number.is_nonpositive))
        case sympy.Add():
            return Sign(all(up), all(down))
        case sympy.Mul():
            return reduce(Sign.times, parts)
        case sympy.Pow(args=(_, sympy.Integer() as power)) if power > 0:
            return Sign(True, False) if power % 2 == 0 else parts[0]
        case FloorQuotient():
            return Sign(up[0] and up[1], down[0] and up[1])
        case sympy.Max():
            return Sign(any(up), all(down))
        case sympy.Min():
            return Sign(all(up), any(down))
        case _:
            return Sign(False, False)
