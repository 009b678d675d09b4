"""Prefix and suffix reductions, in linear time.

    Sum(s: where(s <= t, f[s], 0))                          Prod, Max and Min likewise; any order of s and t
    Sum(s: where(s <= t, base ** (t - s) * f[s], 0))        also exp(rate * (t - s)), and times (t - s)

`f` is reduced along s once. Every t reads its partial result. With a decay the next
partial result is `base` times the one before plus `f`, so no power of the base is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....tdl.ast import Reducer
from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.blocks import small, volume
from ..nodes.ir import Apply, Load, Names, Node, Reduction, walk
from .decay import Decay, decay
from .guarded import apply, chosen, depending, form, free, guarded, product, reduction, without

GAIN = 2
"""A scan pays if it visits this many times fewer elements than the conditions have values."""


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

    def pays(self, extents: Mapping[str, int]) -> bool:
        """Return whether the scan visits far fewer elements than the sum has terms."""
        ranges = {name: (0, extent) for name, extent in extents.items()}
        visited = volume(self.source.free, ranges) + volume(self.node.free, ranges)
        return volume(self.node.body.free, ranges) >= GAIN * max(visited, 1)


def scan(node: Reduction) -> Scan | None:
    """Return the scan that computes a reduction over one variable; None if it has another form."""
    if len(node.variables) != 1:
        return None
    parts = guarded(node.reducer, node.body)
    for position, condition in enumerate(parts.conditions):
        for order in _orders(condition, frozenset(node.variables)):
            others = (*parts.conditions[:position], *parts.conditions[position + 1 :])
            if (found := _scan(node, order, others, parts.factors)) is not None:
                return found
    return None


def _orders(condition: Node, variables: Names) -> list[Order]:
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
    decaying = decay(kernel, order.variable, order.along, order.bound, order.suffix) if kernel else None
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
        for order in _orders(condition, frozenset(node.variables)):
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
