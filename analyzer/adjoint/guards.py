"""Comparisons of index expressions: the guards under which an element is read."""

from __future__ import annotations

from collections.abc import Iterator

from ...tdl.ast import Binary, Element, Variable
from ...tdl.traverse import Node, walk
from ..indices.polynomial import Polynomial, Ranges, expression

_MIRRORED = {"==": "==", ">=": "<=", "<": ">"}


def comparison(operator: str, difference: Polynomial) -> Binary:
    """`difference == 0` (or `>=`, `<`) with positive terms on both sides and index variables on the left."""
    left = Polynomial({monomial: c for monomial, c in difference.terms.items() if c > 0})
    right = left - difference
    if not _mentions(left) and _mentions(right):
        return Binary(_MIRRORED[operator], expression(right), expression(left))
    return Binary(operator, expression(left), expression(right))


def in_range(value: Polynomial, limit: Polynomial, ranges: Ranges) -> list[Binary]:
    """Comparisons that keep `value` in `[0, limit)`, without those that always hold."""
    conditions: list[Binary] = []
    if not ranges.nonnegative(value):
        conditions.append(comparison(">=", value))
    if not ranges.below(value, limit):
        conditions.append(comparison("<", value - limit))
    return conditions


def _mentions(polynomial: Polynomial) -> bool:
    return any(isinstance(node, Variable | Element) for node in nodes(polynomial))


def nodes(polynomial: Polynomial) -> Iterator[Node]:
    """Yield every node of the atoms."""
    return (node for atom in polynomial.atoms for node in walk(atom))
