"""Sums of the terms from a place on whose data equals a key: the gradients of running maxima and minima.

    Sum(t: where(s <= t and x[s] == y[t], g[t], 0))

If y is the running maximum of x, the terms of a key follow one another. The sum is then linear in s and t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....tdl.ast import Reducer
from ..nodes.blocks import volume
from ..nodes.ir import Apply, Node, Reduction
from .guarded import chosen, depending, guarded, product, without
from .order import Order, orders

GAIN = 4
"""A plan pays if it visits this many times fewer elements than the sum has terms."""


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """`after * sum(source)` over the terms in order whose `reference` equals the `key`, where `holds`."""

    node: Reduction
    """The sum as it was written."""

    order: Order
    """Which terms are summed for which value."""

    key: Node
    """The data of a value."""

    reference: Node
    """The data of a term."""

    source: Node
    """The term, without the order and the equality."""

    after: tuple[Node, ...]
    """The factors that multiply the result."""

    holds: tuple[Node, ...]
    """The conditions without which the result is 0."""

    def pays(self, extents: Mapping[str, int]) -> bool:
        """Return whether far fewer elements are visited than the sum has terms, if those of a key follow one
        another.
        """
        ranges = {name: (0, extent) for name, extent in extents.items()}
        visited = sum(volume(part.free, ranges) for part in (self.source, self.reference, self.node))
        return volume(self.node.body.free, ranges) >= GAIN * max(visited, 1)


def match(node: Reduction) -> Match | None:
    """Return the plan that computes a sum over one variable; None if it has another form."""
    if node.reducer is not Reducer.SUM or len(node.variables) != 1:
        return None
    parts = guarded(node.reducer, node.body)
    for condition in parts.conditions:
        for order in orders(condition, frozenset(node.variables)):
            for equality in without(parts.conditions, [condition]):
                others = without(parts.conditions, [condition, equality])
                for key, reference in _sides(equality, order, parts.conditions):
                    if (found := _match(node, order, key, reference, others, parts.factors)) is not None:
                        return found
    return None


def _sides(equality: Node, order: Order, conditions: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    """Yield data of the place in the order, and data of the term, that are equal."""
    match equality:
        case Apply(function="==", arguments=(left, right)):
            a, b = _under(left, conditions), _under(right, conditions)
            for key, reference in ((a, b), (b, a)):
                apart = order.variable not in key.free and order.along not in reference.free
                both = order.along in key.free and order.variable in reference.free
                if apart and both and key.loads and reference.loads:
                    yield key, reference
        case _:
            return


def _under(node: Node, conditions: Sequence[Node]) -> Node:
    """Return what a choice is where the conditions hold."""
    match node:
        case Apply(function="where", arguments=(condition, x, _)) if condition in conditions:
            return x
        case _:
            return node


def _match(
    node: Reduction,
    order: Order,
    key: Node,
    reference: Node,
    conditions: tuple[Node, ...],
    factors: tuple[Node, ...],
) -> Match | None:
    inside, along = frozenset((order.variable,)), frozenset((order.along,))
    source, held = depending(factors, inside), depending(conditions, inside)
    if depending((*source, *held), along):
        return None
    terms = chosen(node.reducer, held, product(source))
    return Match(node, order, key, reference, terms, without(factors, source), without(conditions, held))
