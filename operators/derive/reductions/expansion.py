"""Sums and differences among the factors of a sum, expanded if fewer elements are touched that way.

    Sum(k: a[i, k] * (b[j, k] - c[i]))  has I * J * K products of a and a difference;
    Sum(k: a * b) - c * Sum(k: a)       has a matrix product, and sums over I * K elements.

A square of a difference is expanded in the same way if it is the only factor. It is then known not to be
negative, although rounding errors of its expansion could make it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..nodes.ir import NOTHING, Apply, Constant, Names, Node

Extents = Mapping[str, int]

REUSE = 4
"""An expansion pays if the product has this many times more elements than any part of the expansion."""

MOST_SUMS = 3
"""The most factors that are sums, if they are to be expanded: each doubles the number of terms."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """A sum of products: each term a coefficient and factors."""

    terms: tuple[tuple[int, tuple[Node, ...]], ...]
    nonnegative: bool
    """Whether the whole cannot be negative in exact arithmetic."""


def size(names: Names, extents: Extents) -> int:
    """Count the elements of a value that depends on these variables."""
    return prod(extents[name] for name in names)


def expanded(factors: list[Node], bound: Names, extents: Extents) -> Expansion | None:
    """Return the expansion of the sum over `bound` of a product, or None if none pays."""
    if not factors or sum(map(_is_sum, factors)) > MOST_SUMS:
        return None
    if (base := _squared(factors)) is not None and (parts := _parts(base)) is not None:
        a, b, sign = parts
        if _pays((a, b), bound, extents):
            repeated = ((1, (a, a)), (1, (b, b)), (2 * sign, (a, b)))
            return Expansion(tuple(_complete(term, bound, extents) for term in repeated), True)
        return None
    for position, factor in enumerate(factors):
        others = (*factors[:position], *factors[position + 1 :])
        if (parts := _parts(factor)) is not None and _pays([*others, *parts[:2]], bound, extents):
            a, b, sign = parts
            terms = (1, (*others, a)), (sign, (*others, b))
            return Expansion(tuple(_complete(term, bound, extents) for term in terms), False)
    return None


def _squared(factors: list[Node]) -> Node | None:
    """Return what the factors are the square of."""
    match factors:
        case [Apply(function="square", arguments=(base,))]:
            return base
        case [Apply(function="**", arguments=(base, Constant(value=2)))]:
            return base
        case [base, other] if base is other:
            return base
        case _:
            return None


def _parts(factor: Node) -> tuple[Node, Node, int] | None:
    """Return the two sides of a sum, and the second one's sign."""
    match factor:
        case Apply(function="+" | "-" as function, arguments=(a, b)):
            return a, b, 1 if function == "+" else -1
        case _:
            return None


def _is_sum(factor: Node) -> bool:
    return isinstance(factor, Apply) and factor.function in ("+", "-")


def _pays(parts: Iterable[Node], bound: Names, extents: Extents) -> bool:
    factors = [factor.free for part in parts for factor in _multiplied(part)]
    everything = NOTHING.union(*factors)
    largest = max(size(names, extents) for names in (everything - bound, *factors))
    return size(everything, extents) >= REUSE * max(largest, 1)


def _multiplied(node: Node) -> Iterator[Node]:
    """Yield what a product is made of."""
    match node:
        case Apply(function="*" | "/" | "negative", arguments=arguments):
            for argument in arguments:
                yield from _multiplied(argument)
        case _:
            yield node


def _complete(
    term: tuple[int, tuple[Node, ...]], bound: Names, extents: Extents
) -> tuple[int, tuple[Node, ...]]:
    """Return a term of a sum, times the number of values of every variable that it does not depend on."""
    coefficient, factors = term
    absent = bound - NOTHING.union(*(factor.free for factor in factors))
    return coefficient * size(absent, extents), factors
