"""Gathers whose conditions compare what is picked with something at the position that picks it.

    Sum(v: where(row[b] == v and x[b] == y[v], g[v], 0))
        ->  where(x[b] == Sum(v: where(row[b] == v, y[v], 0)), Sum(v: where(row[b] == v, g[v], 0)), 0)

These are the gradients of the greatest and the least of the elements that are written at a place. The parts
of a condition besides the position are picked by themselves, so nothing has an element for each pair of
position and place. Where no place is picked, both sums are 0, and so is the result, whatever the condition
says of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....tdl.ast import Reducer
from ..nodes.ir import Apply, Names, Node, Reduction
from .guarded import apply, chosen, depending, guarded, product, reduction, without
from .onehot import gather_keys, onehot


def split(node: Reduction, extents: Mapping[str, int]) -> Node | None:
    """Return a sum that picks what its conditions compare; None for other forms, or if that does not pay."""
    parts = guarded(node.reducer, node.body)
    keys = gather_keys(parts.conditions, node)
    if node.reducer is not Reducer.SUM or len(keys) != len(node.variables):
        return None
    equalities = tuple(key.condition for key in keys)
    pairs = frozenset(node.variables).union(*(key.free for key in keys))
    others = without(parts.conditions, equalities)
    compared = tuple(condition for condition in others if condition.free >= pairs)
    if not compared or any(factor.free >= pairs for factor in parts.factors):
        return None
    sides = _Sides(node, equalities, pairs, extents)
    conditions = [sides.picked(condition) for condition in compared]
    inside = depending(without(others, compared), frozenset(node.variables))
    value = sides.gather(chosen(Reducer.SUM, inside, product(parts.factors)))
    outside = without(others, (*compared, *inside))
    return chosen(Reducer.SUM, (*outside, *conditions), value) if sides.pay else None


class _Sides:
    """Picks parts of a sum's body; `pay` says whether it is worth it for all of them."""

    def __init__(
        self, node: Reduction, equalities: tuple[Node, ...], pairs: Names, extents: Mapping[str, int]
    ) -> None:
        self._variables, self._equalities, self._pairs = node.variables, equalities, pairs
        self._extents = extents
        self.pay = True

    def picked(self, node: Node) -> Node:
        """Return a condition of a position, in which all that depends on a place is picked."""
        if not node.free.intersection(self._variables):
            return node
        match node:
            case Apply(function="where", arguments=(condition, x, _)) if condition in self._equalities:
                return self.picked(x)
            case Apply(function=function, arguments=arguments) if node.free >= self._pairs:
                return apply(function, *map(self.picked, arguments))
            case _:
                return self.gather(node)

    def gather(self, node: Node) -> Node:
        """Return what a node is at the place that is picked, or 0."""
        found = reduction(Reducer.SUM, self._variables, chosen(Reducer.SUM, self._equalities, node))
        assert isinstance(found, Reduction)
        plan = onehot(found)
        self.pay &= plan is not None and plan.pays(self._extents)
        return found
