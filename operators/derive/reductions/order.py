"""Comparisons that say which values of one index variable are taken, in terms of another one."""

from __future__ import annotations

from dataclasses import dataclass

from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.ir import Apply, Names, Node
from .guarded import form


@dataclass(frozen=True, slots=True)
class Order:
    """`variable <= bound`, or `variable >= bound`."""

    variable: str
    """The variable of the reduction."""

    along: str
    """The only variable of the bound."""

    bound: AffineIndex
    """An affine form of `along`."""

    suffix: bool
    """Whether the comparison is `>=`, so that the terms at the end are reduced."""


def orders(condition: Node, variables: Names) -> list[Order]:
    """Return what a comparison says about one of the variables in terms of another one."""
    if not (isinstance(condition, Apply) and condition.function in ("<", "<=", ">", ">=")):
        return []
    a, b = (form(argument) for argument in condition.arguments)
    if a is None or b is None:
        return []
    difference = affine.added(a, b, -1)
    found = []
    for name, coefficient in difference.coefficients:
        others = [other for other, _ in difference.coefficients if other != name]
        if name in variables and abs(coefficient) == 1 and len(others) == 1:
            # coefficient * name + rest < 0, or with another comparison
            rest = affine.added(difference, affine.variable(name), -coefficient)
            bound = affine.added(affine.ZERO, rest, -coefficient)
            suffix = (condition.function in (">", ">=")) == (coefficient > 0)
            strict = condition.function in ("<", ">")
            shift = 0 if not strict else 1 if suffix else -1
            found.append(Order(name, others[0], affine.added(bound, AffineIndex((), shift)), suffix))
    return found
