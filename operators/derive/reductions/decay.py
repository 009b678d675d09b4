"""Factors of a prefix sum that depend on the distance: `base ** (t - s)`, `exp(rate * (t - s))`, `t - s`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.ir import Apply, Constant, Names, Node
from .guarded import apply, form


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
    """The summand besides the distance."""


def decay(
    factors: tuple[Node, ...], variable: str, along: str, bound: AffineIndex, suffix: bool
) -> Decay | None:
    """Return the product of factors that depend on `variable` and `along`; None if one is of another form."""
    distance = affine.added(bound, affine.variable(variable), -1)
    if suffix:
        distance = affine.added(affine.ZERO, distance, -1)
    both = frozenset((variable, along))
    bases: list[Node] = []
    scale: list[Node] = []
    line: tuple[int, int] | None = None
    for factor in factors:
        if (shape := form(factor)) is not None:
            found = _along(shape, distance)
            if found is None or line is not None:
                return None
            line = found
            continue
        power = _power(factor, both)
        if power is None or (found := _along(power[1], distance)) is None:
            return None
        step, shift = found
        bases.append(_raised(power[0], step))
        if shift:
            scale.append(_raised(power[0], shift))
    slope, level = line or (0, 1)
    base = reduce(lambda a, b: apply("*", a, b), bases) if bases else None
    return Decay(base, tuple(scale), slope, level)


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
