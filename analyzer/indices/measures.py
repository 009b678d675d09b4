"""The signs, sizes and divisors of formulas whose symbols have no values yet.

Equal formulas are one object, so every part is measured once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, reduce
from itertools import groupby
from typing import NamedTuple, assert_never

from .formula import Atom, Factors, FloorQuotient, Formula, Greatest, Least, SumFactor, Unknown, parts_of

_SYMBOL_BITS = 64


class Sign(NamedTuple):
    """Which signs a formula is known to have, whatever the extents are. Both hold for zero."""

    nonnegative: bool
    """Whether it is never negative."""

    nonpositive: bool
    """Whether it is never positive."""

    def times(self, other: Sign) -> Sign:
        """Return the sign of a product."""
        return Sign(
            (self.nonnegative and other.nonnegative) or (self.nonpositive and other.nonpositive),
            (self.nonnegative and other.nonpositive) or (self.nonpositive and other.nonnegative),
        )


@cache
def sign(formula: Formula) -> Sign:
    """Return the sign of a formula."""
    products = [reduce(Sign.times, _signs(factors), _of(number)) for number, factors in formula.terms]
    return _all([_of(formula.constant), *products])


def _signs(factors: Factors) -> Iterator[Sign]:
    """Yield the signs of powers."""
    for atom, run in groupby(factors):
        yield Sign(True, False) if len(list(run)) % 2 == 0 else _sign_of_atom(atom)


def _sign_of_atom(atom: Atom) -> Sign:
    signs = [sign(part) for part in parts_of(atom)]
    match atom:
        case Unknown(nonnegative=nonnegative):
            return Sign(nonnegative, False)
        case FloorQuotient():
            value, divisor = signs
            return Sign(value.nonnegative and divisor.nonnegative, value.nonpositive and divisor.nonnegative)
        case Greatest():
            return Sign(any(each.nonnegative for each in signs), _all(signs).nonpositive)
        case Least():
            return Sign(_all(signs).nonnegative, any(each.nonpositive for each in signs))
        case SumFactor():
            return signs[0]
        case _:
            assert_never(atom)


def _of(number: int) -> Sign:
    return Sign(number >= 0, number <= 0)


def _all(signs: list[Sign]) -> Sign:
    """Return the signs that all have."""
    return Sign(all(each.nonnegative for each in signs), all(each.nonpositive for each in signs))


@cache
def tree_size(formula: Formula) -> int:
    """Return the nodes of a formula written out, with nothing shared."""
    return _joined([_product_size(*term) for term in formula.terms], formula.constant != 0)


def _product_size(number: int, factors: Factors) -> int:
    return _joined([1 + sum(map(tree_size, parts_of(atom))) for atom in factors], number != 1)


def _joined(sizes: list[int], number: bool) -> int:
    """Return the nodes of a sum or product of parts, and of a number if there is one."""
    if number or not sizes:
        sizes = [*sizes, 1]
    return sum(sizes) + (len(sizes) > 1)


@cache
def bits(formula: Formula) -> int:
    """Return the most bits that a formula may have, with 64 for each symbol."""
    parts = [number.bit_length() * (abs(number) != 1) + sum(map(_bits, f)) for number, f in formula.terms]
    if formula.constant or not parts:
        parts.append(formula.constant.bit_length())
    return max(parts) + (len(parts).bit_length() if len(parts) > 1 else 0)


def _bits(atom: Atom) -> int:
    return max(map(bits, parts_of(atom)), default=_SYMBOL_BITS)


def divisors_in(formula: Formula) -> Iterator[Formula]:
    """Yield the divisors that depend on symbols, in the formula and inside of them."""
    left, seen = [formula], {formula}
    while left:
        for atom in left.pop().atoms:
            if isinstance(atom, FloorQuotient) and atom.divisor.value is None:
                yield atom.divisor
            for part in parts_of(atom):
                if part not in seen:
                    seen.add(part)
                    left.append(part)
