"""Reductions of all terms but one, as what comes before that term and what comes after it.

    Prod(v: where(v != p, f[v], 1))  ->  Prod(v: where(v < p, f[v], 1)) * Prod(v: where(v > p, f[v], 1))

    Sum(t: where(p <= t, g[t] * Prod(v: where(v != p and v <= t, f[v], 1)), 0))
        ->  the same two products; `v <= t` stays in the second, since it follows from `v < p` and `p <= t`

These are the gradients of a product and of a cumulative product. Each part is a prefix or a suffix, or the
product between two places, so a scan computes it. Nothing is divided, so terms may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....tdl.ast import Reducer
from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.functions import COMBINE
from ..nodes.ir import Apply, Node, Reduction
from .guarded import apply, chosen, form, guarded, index, product, reduction, without
from .order import orders


def split(node: Reduction) -> Node | None:
    """Return a reduction without an excluded term; None if it excludes none.

    In a sum this is done in its factors, whose own conditions may follow from those of the sum.
    """
    parts = guarded(node.reducer, node.body)
    if node.reducer is Reducer.SUM:
        facts = [fact for condition in parts.conditions for fact in _facts(condition)]
        for position, factor in enumerate(parts.factors):
            if isinstance(factor, Reduction) and (found := _parted(factor, facts)) is not None:
                value = product([*parts.factors[:position], *parts.factors[position + 1 :], found])
                return reduction(node.reducer, node.variables, chosen(node.reducer, parts.conditions, value))
    return _parted(node, [])


def _parted(node: Reduction, facts: Sequence[AffineIndex]) -> Node | None:
    if len(node.variables) != 1:
        return None
    (variable,) = node.variables
    parts = guarded(node.reducer, node.body)
    for condition in parts.conditions:
        if (place := _excluded(condition, variable)) is None:
            continue
        others = without(parts.conditions, [condition])
        sides = []
        for comparison in ("<", ">"):
            side = apply(comparison, index(affine.variable(variable)), index(place))
            left = [other for other in others if not _follows(other, variable, place, comparison, facts)]
            body = chosen(node.reducer, [side, *left], product(parts.factors))
            sides.append(reduction(node.reducer, node.variables, body))
        return apply(COMBINE[node.reducer], *sides)
    return None


def _excluded(condition: Node, variable: str) -> AffineIndex | None:
    """Return the place that a variable does not take."""
    match condition:
        case Apply(function="!=", arguments=(left, right)):
            a, b = form(left), form(right)
            if a is None or b is None:
                return None
            difference = affine.added(a, b, -1)
            sign = dict(difference.coefficients).get(variable, 0)
            if abs(sign) != 1 or len(difference.coefficients) < 2:
                return None
            rest = affine.added(difference, affine.variable(variable), -sign)
            return affine.added(affine.ZERO, rest, -sign)
        case _:
            return None


def _follows(
    other: Node, variable: str, place: AffineIndex, comparison: str, facts: Sequence[AffineIndex]
) -> bool:
    """Return whether a condition on a variable that is before or after a place follows from the facts."""
    for order in orders(other, frozenset((variable,))):
        if order.suffix != (comparison == ">"):
            continue
        room = affine.added(order.bound, place, -1)
        if order.suffix:
            room = affine.added(affine.ZERO, room, -1)
        for known in (affine.ZERO, *facts):
            beyond = affine.added(room, known, -1)
            if not beyond.coefficients and beyond.constant >= -1:
                return True
    return False


def _facts(condition: Node) -> Iterator[AffineIndex]:
    """Yield forms that are not negative where a condition holds."""
    match condition:
        case Apply(function="<" | "<=" | ">" | ">=" | "==" as function, arguments=(left, right)):
            a, b = form(left), form(right)
            if a is None or b is None:
                return
            difference = affine.added(a, b, -1)
            if function in (">", ">=", "=="):
                yield affine.added(difference, AffineIndex((), 1 if function == ">" else 0), -1)
            if function in ("<", "<=", "=="):
                opposite = affine.added(affine.ZERO, difference, -1)
                yield affine.added(opposite, AffineIndex((), 1 if function == "<" else 0), -1)
        case _:
            return
