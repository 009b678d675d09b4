"""Formulas as expressions of sympy: to print them, and to simplify those that people read."""

from __future__ import annotations

from functools import cache
from typing import assert_never

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from .formula import Atom, FloorQuotient, Formula, Greatest, Least, SumFactor, Unknown


class _Quotient(sympy.Expr):  # type: ignore[misc]
    """`value // divisor`, with both as they stand. Sympy's own would spread the divisor over a sum."""

    is_integer = True

    def __new__(cls, value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
        """Return the quotient, or a number if it is one."""
        if value.is_Integer and divisor.is_Integer:
            return sympy.Integer(int(value) // int(divisor) if divisor else 0)
        made: sympy.Expr = super().__new__(cls, value, divisor)
        return made

    def _eval_is_nonnegative(self) -> bool | None:
        value, divisor = self.args
        return True if value.is_nonnegative and divisor.is_nonnegative else None

    def _sympystr(self, printer: StrPrinter) -> str:
        value, divisor = (printer.parenthesize(part, PRECEDENCE["Atom"], strict=True) for part in self.args)
        return f"({value} // {divisor})"


@cache
def symbolic(formula: Formula) -> sympy.Expr:
    """Return a formula as an expression of sympy. Least and greatest values stay as they stand, because sympy
    would order the values, in a time exponential in their depth.
    """
    terms = [sympy.Mul(number, *map(_symbolic, factors)) for number, factors in formula.terms]
    return sympy.Add(formula.constant, *terms)


@cache
def _symbolic(atom: Atom) -> sympy.Expr:
    match atom:
        case Unknown(name=name, nonnegative=nonnegative):
            return sympy.Symbol(name, integer=True, nonnegative=nonnegative or None)
        case FloorQuotient(value=value, divisor=divisor):
            return _Quotient(symbolic(value), symbolic(divisor))
        case Least(values=values):
            return sympy.Basic.__new__(sympy.Min, *map(symbolic, values))
        case Greatest(values=values):
            return sympy.Basic.__new__(sympy.Max, *map(symbolic, values))
        case SumFactor(value=value):
            return symbolic(value)
        case _:
            assert_never(atom)
