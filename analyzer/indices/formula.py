"""Integer formulas: sums of products of symbols, floor quotients, and least and greatest values.

The constants of indices, the extents of variables and the bounds of regions are formulas. They stay nearly as
they stand: like terms are collected, numbers are multiplied into sums, and nothing else is simplified. Equal
formulas are one object. So they are compared and hashed in a time that does not depend on their depth, and
parts that occur several times are traversed once.

    floor_quotient(value, divisor)     `floor(value / divisor)`
    least, greatest                    one of several values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, assert_never


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """`constant + sum(coefficient * product(factors))`; the factors of distinct terms differ.

    Formulas are made by arithmetic and by the functions of this module, which return equal ones as one
    object.
    """

    constant: int
    """The integer that is added."""

    terms: tuple[tuple[int, Factors], ...]
    """The terms: a coefficient that is not zero, and factors."""

    @property
    def value(self) -> int | None:
        """Return the number, if the formula is one."""
        return None if self.terms else self.constant

    @property
    def atom(self) -> Atom | None:
        """Return the atom, if the formula is just that."""
        match self.terms:
            case ((1, (atom,)),) if not self.constant:
                return atom
            case _:
                return None

    @property
    def atoms(self) -> Iterator[Atom]:
        """Yield the factors of all terms."""
        for _, factors in self.terms:
            yield from factors

    def __add__(self, other: Formula | int) -> Formula:
        return total((self, _lift(other)))

    __radd__ = __add__

    def __neg__(self) -> Formula:
        return self._times(-1)

    def __sub__(self, other: Formula | int) -> Formula:
        return total((self, -_lift(other)))

    def __rsub__(self, other: int) -> Formula:
        return total((_lift(other), -self))

    def __mul__(self, other: Formula | int) -> Formula:
        other = _lift(other)
        if other.value is not None:
            return self._times(other.value)
        if self.value is not None:
            return other._times(self.value)
        (left, some), (right, more) = self._factors, other._factors
        return _formula(0, {tuple(sorted(some + more, key=_serial)): left * right})

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Formula:
        if self.value is not None or power == 0:
            return integer(self.constant**power)
        coefficient, factors = self._factors
        return _formula(0, {tuple(sorted(factors * power, key=_serial)): coefficient**power})

    def _times(self, number: int) -> Formula:
        return _formula(self.constant * number, {factors: number * each for each, factors in self.terms})

    @property
    def _factors(self) -> tuple[int, Factors]:
        """The formula as one term: a coefficient and factors."""
        if len(self.terms) == 1 and not self.constant:
            return self.terms[0]
        return 1, (_atom(SumFactor, self),)


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """An integer that is not known yet."""

    serial: int
    """A number that orders atoms."""

    name: str
    """The name."""

    nonnegative: bool
    """Whether it is never negative."""


@dataclass(frozen=True, slots=True, eq=False)
class FloorQuotient:
    """`floor(value / divisor)`; by a divisor of zero it is zero, because then there is nothing to index."""

    serial: int
    """A number that orders atoms."""

    value: Formula
    """The dividend."""

    divisor: Formula
    """The divisor."""


@dataclass(frozen=True, slots=True, eq=False)
class Least:
    """The least one of several values."""

    serial: int
    """A number that orders atoms."""

    values: tuple[Formula, ...]
    """The values."""


@dataclass(frozen=True, slots=True, eq=False)
class Greatest:
    """The greatest one of several values."""

    serial: int
    """A number that orders atoms."""

    values: tuple[Formula, ...]
    """The values."""


@dataclass(frozen=True, slots=True, eq=False)
class SumFactor:
    """A sum that is a factor. Products of sums are not expanded."""

    serial: int
    """A number that orders atoms."""

    value: Formula
    """The sum."""


Atom = Unknown | FloorQuotient | Least | Greatest | SumFactor
Factors = tuple[Atom, ...]
"""The factors of a product, in the order of their serial numbers. A power repeats its base."""

_known: dict[tuple[object, ...], Any] = {}
_serials = count()


def parts_of(atom: Atom) -> tuple[Formula, ...]:
    """Return the formulas that an atom is made of."""
    match atom:
        case Unknown():
            return ()
        case FloorQuotient(value=value, divisor=divisor):
            return value, divisor
        case Least(values=values) | Greatest(values=values):
            return values
        case SumFactor(value=value):
            return (value,)
        case _:
            assert_never(atom)


def integer(value: int) -> Formula:
    """Return a number."""
    return _formula(value, {})


def symbol(name: str, nonnegative: bool = False) -> Formula:
    """Return a symbol; equal names with equal signs are one symbol."""
    return _alone(_atom(Unknown, name, nonnegative))


def total(parts: Iterable[Formula]) -> Formula:
    """Return a sum."""
    constant, collected = 0, dict[Factors, int]()
    for part in parts:
        constant += part.constant
        for coefficient, factors in part.terms:
            collected[factors] = collected.get(factors, 0) + coefficient
    return _formula(constant, collected)


def floor_quotient(value: Formula, divisor: Formula) -> Formula:
    """Return `floor(value / divisor)`, with both as they stand."""
    if divisor.value == 1:
        return value
    if value.value is not None and divisor.value is not None:
        return integer(value.value // divisor.value if divisor.value else 0)
    return _alone(_atom(FloorQuotient, value, divisor))


def least(*values: Formula) -> Formula:
    """Return the least value."""
    numbers = [value.constant for value in values if not value.terms]
    return integer(min(numbers)) if len(numbers) == len(values) else _alone(_atom(Least, values))


def greatest(*values: Formula) -> Formula:
    """Return the greatest value."""
    numbers = [value.constant for value in values if not value.terms]
    return integer(max(numbers)) if len(numbers) == len(values) else _alone(_atom(Greatest, values))


ZERO, ONE = (_known.setdefault((number, ()), Formula(number, ())) for number in (0, 1))


def _lift(value: Formula | int) -> Formula:
    return integer(value) if isinstance(value, int) else value


def _alone(atom: Atom) -> Formula:
    return _formula(0, {(atom,): 1})


def _formula(constant: int, collected: Mapping[Factors, int]) -> Formula:
    """Return the formula of these terms. Those with a coefficient of zero are left out."""
    terms = tuple(sorted([(c, factors) for factors, c in collected.items() if c], key=_serials_of))
    key = (constant, terms)
    found: Formula | None = _known.get(key)
    return _known.setdefault(key, Formula(constant, terms)) if found is None else found


def _atom(kind: type[Atom], *parts: object) -> Any:
    key = (kind, *parts)
    found = _known.get(key)
    return _known.setdefault(key, kind(next(_serials), *parts)) if found is None else found  # type: ignore[arg-type]


def _serial(atom: Atom) -> int:
    return atom.serial


def _serials_of(term: tuple[int, Factors]) -> list[int]:
    return [atom.serial for atom in term[1]]
