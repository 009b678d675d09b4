"""Prefix and suffix reductions, in linear time.

    Sum(s: where(s <= t, f[s], 0))                          Prod, Max and Min likewise; any order of s and t
    Sum(s: where(s <= t, base ** (t - s) * f[s], 0))        also exp(rate * (t - s)), and times (t - s)
    Sum(s: where(s <= t, Prod(v: where(s < v and v <= t, base[v], 1)) * f[s], 0))

`f` is reduced along s once. Every t reads its partial result. With a decay the next
partial result is `base` times the one before plus `f`, so no power of the base is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....tdl.ast import Reducer
from ..nodes.blocks import small, volume
from ..nodes.ir import Apply, Load, Node, Reduction, walk
from .decay import Decay, decay
from .guarded import apply, chosen, depending, form, free, guarded, product, reduction, without
from .order import Order, orders


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """`after * reduction(source * decay)` for every value of `order.along`, if all of `holds` are true."""

    node: Reduction
    """The reduction as it was written."""

    order: Order
    """Which terms are reduced for which value."""

    source: Node
    """The term, without the order and the decay."""

    decay: Decay | None
    """The factors that depend on the distance; None if there are none."""

    after: tuple[Node, ...]
    """The factors that multiply the result."""

    holds: tuple[Node, ...]
    """The conditions without which the result is the reducer's identity."""

    @property
    def inside(self) -> Node | None:
        """The reduction that the scan computes along the way."""
        return self.decay.between.node if self.decay is not None and self.decay.between is not None else None

    def pays(self, extents: Mapping[str, int]) -> bool:
        """Return whether the scan visits no more elements than the sum has terms.

        Where a sum is not scanned, terms of other elements are multiplied by zero, also if they are infinite.
        """
        ranges = {name: (0, extent) for name, extent in extents.items()}
        visited = volume(self.source.free, ranges) + volume(self.node.free, ranges)
        return volume(self.node.body.free, ranges) >= max(visited, 1)


def scan(node: Reduction) -> Scan | None:
    """Return the scan that computes a reduction over one variable; None if it has another form."""
    if len(node.variables) != 1:
        return None
    parts = guarded(node.reducer, node.body)
    for position, condition in enumerate(parts.conditions):
        for order in orders(condition, frozenset(node.variables)):
            others = (*parts.conditions[:position], *parts.conditions[position + 1 :])
            if (found := _scan(node, order, others, parts.factors)) is not None:
                return found
    return None


def _scan(
    node: Reduction, order: Order, conditions: tuple[Node, ...], factors: tuple[Node, ...]
) -> Scan | None:
    """Return a scan for an order. `conditions` are those besides the order."""
    inside, along = frozenset((order.variable,)), frozenset((order.along,))
    source = depending(factors, inside) if node.reducer is Reducer.SUM else factors
    kernel = depending(source, along)
    chosen_by = depending(conditions, inside)
    if depending(chosen_by, along) or (kernel and node.reducer is not Reducer.SUM):
        return None
    decaying = decay(kernel, order) if kernel else None
    if kernel and decaying is None:
        return None
    return Scan(
        node,
        order,
        chosen(node.reducer, chosen_by, product(without(source, kernel))),
        decaying,
        without(factors, source),
        without(conditions, chosen_by),
    )


def isolate(node: Reduction, extents: Mapping[str, int]) -> Node | None:
    """Return the reduction with a separate scan for what follows an order of two variables.

    None without one.

    Reductions over variables that only the scan's terms have come first, all others last. A sum that is
    a scan already stays as it is.
    """
    parts = guarded(node.reducer, node.body)
    for position, condition in enumerate(parts.conditions):
        for order in orders(condition, frozenset(node.variables)):
            others = (*parts.conditions[:position], *parts.conditions[position + 1 :])
            found = _isolated(node, order, condition, others, parts.factors, extents)
            if found is not None:
                return found
    return None


def _isolated(
    node: Reduction,
    order: Order,
    condition: Node,
    others: tuple[Node, ...],
    factors: tuple[Node, ...],
    extents: Mapping[str, int],
) -> Node | None:
    inside = frozenset((order.variable,))
    if not node.body.free.issuperset(node.variables):
        return None
    if (split := _split(node, order, condition, others, factors, extents)) is not None:
        return split
    source = depending(factors, inside) if node.reducer is Reducer.SUM else factors
    held = depending(others, inside)
    kernel = depending(source, frozenset((order.along,)))
    rest = [name for name in node.variables if name != order.variable]
    remaining = without(factors, source)
    outside = free((*remaining, *kernel, *others, condition))
    own = [name for name in rest if name not in outside]
    summed = reduction(node.reducer, own, product(without(source, kernel)))
    reach = summed.free | free((*kernel, condition)) - inside
    near = [factor for factor in remaining if factor.free <= reach]
    body = product([summed, *kernel, *near])
    inner = reduction(node.reducer, [order.variable], chosen(node.reducer, (condition, *held), body))
    assert isinstance(inner, Reduction)
    found = scan(inner)
    outer = [name for name in rest if name not in own]
    if found is None or not found.pays(extents) or (outer and not small(inner, extents)):
        return None
    value = product([*without(remaining, near), inner])
    return reduction(node.reducer, outer, chosen(node.reducer, without(others, held), value))


def _split(
    node: Reduction,
    order: Order,
    condition: Node,
    others: tuple[Node, ...],
    factors: tuple[Node, ...],
    extents: Mapping[str, int],
) -> Node | None:
    """Return a sum over a difference of decays as the difference of two sums, if both can be scanned."""
    both = {order.variable, order.along}
    for position, factor in enumerate(factors):
        match factor:
            case Apply(function="+" | "-" as function, arguments=terms) if (
                factor.free >= both
                and form(factor) is None
                and not any(inner.free & both for inner in walk(factor) if isinstance(inner, Load))
            ):
                parts = []
                for term in terms:
                    body = product([*factors[:position], term, *factors[position + 1 :]])
                    whole = reduction(
                        node.reducer, node.variables, chosen(node.reducer, (condition, *others), body)
                    )
                    assert isinstance(whole, Reduction)
                    parts.append(isolate(whole, extents))
                left, right = parts
                return None if left is None or right is None else apply(function, left, right)
    return None
