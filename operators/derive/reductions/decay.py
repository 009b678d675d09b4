"""Factors of a prefix sum that depend on the distance: `base ** (t - s)`, `exp(rate * (t - s))`, `t - s`.

The base may differ from step to step: `Prod(v: where(s < v and v <= t, base[v], 1))`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ....tdl.ast import Reducer
from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.ir import Apply, Constant, Names, Node, Reduction
from .guarded import apply, chosen, form, guarded, product, without
from .order import Order, orders


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """A product over the places between two: the step to place `p` multiplies by its term at `p + shift`."""

    node: Reduction
    """The product as it was written."""

    variable: str
    """The variable of the product."""

    term: Node
    """The term of the product."""

    shift: int
    """The distance from a place to the term that the step to it multiplies by."""


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    """The factor `scale * (slope * distance + level) * base ** distance` of a term.

    The distance of a term is 0 for the last one that is summed, and grows by 1 for every term before.
    """

    base: Node | None
    """The base of the power; None if there is no power."""

    scale: tuple[Node, ...]
    """Factors that do not depend on the distance."""

    slope: int
    """The factor of the distance."""

    level: int
    """The constant that is added to the multiple of the distance."""

    between: Between | None
    """The product of the bases of all steps; None if every step has the same base."""


def decay(factors: tuple[Node, ...], order: Order) -> Decay | None:
    """Return the product of factors that depend on both variables of an order; None if one is of another
    form.
    """
    distance = affine.added(order.bound, affine.variable(order.variable), -1)
    if order.suffix:
        distance = affine.added(affine.ZERO, distance, -1)
    both = frozenset((order.variable, order.along))
    bases: list[Node] = []
    scale: list[Node] = []
    line: tuple[int, int] | None = None
    between: Between | None = None
    for factor in factors:
        if (shape := form(factor)) is not None:
            found = _along(shape, distance)
            if found is None or line is not None:
                return None
            line = found
        elif (power := _power(factor, both)) is not None:
            if (found := _along(power[1], distance)) is None:
                return None
            step, shift = found
            bases.append(_raised(power[0], step))
            if shift:
                scale.append(_raised(power[0], shift))
        elif between is None and (product := _between(factor, order)) is not None:
            between = product
            bases.append(product.term)
        else:
            return None
    if between is not None and line is not None:
        return None
    slope, level = line or (0, 1)
    base = reduce(lambda a, b: apply("*", a, b), bases) if bases else None
    return Decay(base, tuple(scale), slope, level, between)


def _between(factor: Node, order: Order) -> Between | None:
    """Return a product over all places from one end of the order to the other, without one of the ends."""
    if not (isinstance(factor, Reduction) and factor.reducer is Reducer.PROD and len(factor.variables) == 1):
        return None
    parts = guarded(factor.reducer, factor.body)
    ends: dict[str, tuple[Order, Node]] = {}
    for condition in parts.conditions:
        for end in orders(condition, frozenset(factor.variables)):
            ends[end.along] = end, condition
    if ends.keys() != {order.variable, order.along}:
        return None
    (near, _), (far, _) = ends[order.along], ends[order.variable]
    others = without(parts.conditions, [condition for _, condition in ends.values()])
    term = chosen(factor.reducer, others, product(parts.factors))
    # the last place of the product is `shift` after `order.bound`, the first is one more after the term
    last = affine.added(near.bound, order.bound, -1)
    first = affine.added(far.bound, affine.variable(order.variable), -1)
    step = -1 if order.suffix else 1
    if (near.suffix, far.suffix) != (order.suffix, not order.suffix) or last.coefficients:
        return None
    if first != affine.added(last, AffineIndex((), step)) or term.free & ends.keys():
        return None
    (variable,) = factor.variables
    return Between(factor, variable, term, last.constant)


def _along(shape: AffineIndex, distance: AffineIndex) -> tuple[int, int] | None:
    """Return an affine form as `slope * distance + level`; None if it has another form, or is constant."""
    name, unit = distance.coefficients[0]
    slope = dict(shape.coefficients).get(name, 0) // unit
    rest = affine.added(shape, distance, -slope)
    return None if rest.coefficients or not slope else (slope, rest.constant)


def _raised(base: Node, exponent: int) -> Node:
    match base:
        case _ if exponent == 1:
            return base
        case Apply(function="exp", arguments=(rate,)):
            return apply("exp", apply("*", rate, Constant(exponent)))
        case _:
            return apply("**", base, Constant(exponent))


def _power(factor: Node, both: Names) -> tuple[Node, AffineIndex] | None:
    """Return a base that is free of both variables, and its exponent."""
    match factor:
        case Apply(function="**", arguments=(base, exponent)) if not base.free & both:
            shape = form(exponent)
            return None if shape is None else (base, shape)
        case Apply(function="exp", arguments=(exponent,)):
            product = _multiple(exponent, both)
            return None if product is None else (apply("exp", product[0]), product[1])
        case _:
            return None


def _multiple(node: Node, both: Names) -> tuple[Node, AffineIndex] | None:
    """Return a product as a rate that is free of both variables, and an affine form."""
    if (shape := form(node)) is not None:
        return Constant(1), shape
    match node:
        case Apply(function="negative", arguments=(x,)):
            rate, other = x, Constant(-1)
            function = "*"
        case Apply(function="*" | "/" as function, arguments=(x, other)) if not other.free & both:
            rate = x
        case Apply(function="*" as function, arguments=(other, x)) if not other.free & both:
            rate = x
        case _:
            return None
    inner = _multiple(rate, both)
    return None if inner is None else (apply(function, inner[0], other), inner[1])
