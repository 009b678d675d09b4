"""Index expressions as integer polynomials, to solve and simplify them.

A polynomial maps monomials to integer coefficients. The factors of a monomial, its *atoms*, are syntax
nodes: index variables, extents, floor quotients, remainders and whatever else stands in an index.
Dimensions enter through *extents*: variable `v` takes the values `[0, extents[v])`, and an `Extent` is
never negative. With that much known many quotients and guards disappear: `(4 * j + r) // 4` is `j` when
`r` has the extent 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...tdl.ast import Binary, Call, Expression, Extent, Number, Unary, Variable

Monomial = tuple[Expression, ...]
Canonical = Callable[["Polynomial"], "Polynomial"]


def _order(atom: Expression) -> tuple[int, str]:
    match atom:
        case Extent():
            return 0, f"{atom.tensor}[{atom.axis:03}]"
        case Variable():
            return 1, atom.name
        case _:
            return 2, repr(atom)


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of `coefficient * product(monomial)`; terms keep the order in which they first appeared."""

    terms: Mapping[Monomial, int]

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
        """Collect like terms and drop those that vanish."""
        collected: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            collected[monomial] = collected.get(monomial, 0) + coefficient
        return Polynomial({monomial: c for monomial, c in collected.items() if c})

    @staticmethod
    def integer(value: int) -> Polynomial:
        return Polynomial.of([((), value)])

    @staticmethod
    def atom(node: Expression) -> Polynomial:
        return Polynomial({(node,): 1})

    def __add__(self, other: Polynomial | int) -> Polynomial:
        return Polynomial.of([*self.terms.items(), *_lift(other).terms.items()])

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -c for monomial, c in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -_lift(other)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        return Polynomial.of(
            (tuple(sorted(a + b, key=_order)), m * n)
            for a, m in self.terms.items()
            for b, n in _lift(other).terms.items()
        )

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without atoms, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def atoms(self) -> tuple[Expression, ...]:
        return tuple(dict.fromkeys(atom for monomial in self.terms for atom in monomial))

    def coefficient(self, atom: Expression) -> Polynomial | None:
        """Return what multiplies `atom`; None if it is absent or multiplies more than numbers and sizes."""
        found: list[tuple[Monomial, int]] = []
        for monomial, c in self.terms.items():
            if atom not in monomial:
                continue
            rest = list(monomial)
            rest.remove(atom)
            if not all(map(is_size, rest)):
                return None
            found.append((tuple(rest), c))
        return Polynomial.of(found) if found else None

    def divide(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return quotient and rest, which has no term that the divisor's leading one divides exactly."""
        leading = max(divisor.terms, key=_degree)
        c = divisor.terms[leading]
        whole, rest, left = _ZERO, _ZERO, self
        while left.terms:
            factors, coefficient = next(iter(left.terms.items()))
            others = _without(factors, leading)
            if others is None or coefficient % c:
                term = Polynomial({factors: coefficient})
                rest, left = rest + term, left - term
            else:
                term = Polynomial({others: coefficient // c})
                whole, left = whole + term, left - term * divisor
        return whole, rest


def _degree(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
    """Return a rank that is higher for products of more atoms, whatever both are multiplied by."""
    return len(monomial), [_order(atom) for atom in monomial]


def _lift(value: Polynomial | int) -> Polynomial:
    return Polynomial.integer(value) if isinstance(value, int) else value


def _without(factors: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(factors)
    for factor in divisor:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


_ZERO = Polynomial.integer(0)
_ONE = Polynomial.integer(1)


def _as_it_is(polynomial: Polynomial) -> Polynomial:
    return polynomial


@dataclass(frozen=True, slots=True)
class Ranges:
    """The known sizes: extents of variables, and which extents are equal (`canonical`)."""

    extents: Mapping[str, Polynomial]
    canonical: Canonical = _as_it_is
    divisors: tuple[Polynomial, ...] = ()
    """Divisors of the description, which binding refuses unless they are positive."""

    def positive(self, size: Polynomial) -> bool:
        """Return whether a size is known to be positive wherever there is something to index."""
        return is_positive(size) or size in self.divisors

    def nonnegative(self, polynomial: Polynomial) -> bool:
        """Return whether the polynomial is provably >= 0 for all sizes; False if that is not known."""
        if polynomial in self.divisors:
            return True
        lowest = self.bound(polynomial, upper=False)
        return lowest is not None and self._size_nonnegative(lowest)

    def below(self, polynomial: Polynomial, limit: Polynomial) -> bool:
        """Return whether the polynomial is provably < limit."""
        highest = self.bound(polynomial, upper=True)
        return highest is not None and self._size_nonnegative(limit - highest - 1)

    def _size_nonnegative(self, size: Polynomial) -> bool:
        """Return whether a size is >= 0, also where `-c * (x // c) >= -x` shows it."""
        least = _ZERO
        for monomial, c in size.terms.items():
            match monomial:
                case (Binary("//", left, Number(int(divisor))),) if c < 0 < divisor and c % divisor == 0:
                    least += self.polynomial(left) * (c // divisor)
                case _:
                    least += Polynomial({monomial: c})
        return _plainly_nonnegative(self.canonical(least))

    def bound(self, polynomial: Polynomial, *, upper: bool) -> Polynomial | None:
        """Return the largest (smallest) value in terms of sizes alone; None if no bound is known."""
        total = _ZERO
        for monomial, c in polynomial.terms.items():
            sizes = tuple(atom for atom in monomial if is_size(atom))
            others = [atom for atom in monomial if not is_size(atom)]
            scale = Polynomial({sizes: c})
            if not others:
                total += scale
                continue
            if len(others) > 1:
                return None
            value = self._atom_bound(others[0], upper=upper if c > 0 else not upper)
            if value is None:
                return None
            total += scale * value
        return total

    def _atom_bound(self, atom: Expression, *, upper: bool) -> Polynomial | None:
        match atom:
            case Variable(name) if name in self.extents:
                return self.extents[name] - 1 if upper else _ZERO
            case Binary("//", left, right):
                dividend, divisor = self.polynomial(left), self.polynomial(right)
                if not self.positive(divisor) or not self.nonnegative(dividend):
                    return None
                if not upper:
                    return _ZERO
                highest = self.bound(dividend, upper=True)
                return None if highest is None else _floor_divide(highest, divisor)
            case Binary("%", _, right):
                divisor = self.polynomial(right)
                known = self.positive(divisor)
                if not known and (upper or not _plainly_nonnegative(self.canonical(divisor))):
                    return None
                return divisor - 1 if upper else _ZERO
            case _:
                return None

    def polynomial(self, node: Expression) -> Polynomial:
        """Return an index or extent expression in normal form."""
        match node:
            case Number(int(value)):
                return Polynomial.integer(value)
            case Unary("-", operand):
                return -self.polynomial(operand)
            case Binary("+", left, right):
                return self.polynomial(left) + self.polynomial(right)
            case Binary("-", left, right):
                return self.polynomial(left) - self.polynomial(right)
            case Binary("*", left, right):
                return self.polynomial(left) * self.polynomial(right)
            case Binary("//", left, right):
                return self.quotient(self.polynomial(left), self.polynomial(right))
            case Binary("%", left, right):
                return self.remainder(self.polynomial(left), self.polynomial(right))
            case Call("maximum" | "minimum" as name, (left, right)):
                return self._chosen(name, self.polynomial(left), self.polynomial(right))
            case Call("abs", (operand,)):
                return self._absolute(self.polynomial(operand))
            case _:
                return Polynomial.atom(node)

    def _chosen(self, name: str, left: Polynomial, right: Polynomial) -> Polynomial:
        """Return the greater or lesser one, if it is known which that is."""
        greater, less = (left, right) if self._occupied(left - right) else (right, left)
        if not self._occupied(greater - less):
            return Polynomial.atom(Call(name, (expression(left), expression(right))))
        return greater if name == "maximum" else less

    def _absolute(self, value: Polynomial) -> Polynomial:
        positive = value if self._occupied(value) else -value
        return positive if self._occupied(positive) else Polynomial.atom(Call("abs", (expression(value),)))

    def _occupied(self, polynomial: Polynomial) -> bool:
        """Return whether the polynomial is >= 0 wherever no extent is 0, so that there is
        something to index.
        """
        lowest = self.bound(polynomial, upper=False)
        if lowest is None:
            return False
        spare = _ZERO
        for monomial, c in self.canonical(lowest).terms.items():
            term = Polynomial.integer(c)
            for atom in monomial:
                term *= Polynomial.atom(atom) + (1 if isinstance(atom, Extent) else 0)
            spare += term
        return _plainly_nonnegative(spare)

    def quotient(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """`dividend // divisor`, rounded down; multiples of the divisor leave the quotient."""
        if divisor.constant == 1:
            return dividend
        if divisor.constant == 0:
            return Polynomial.atom(Binary("//", expression(dividend), expression(divisor)))
        if divisor.constant is not None and divisor.constant < 0:
            return self.quotient(-dividend, -divisor)
        whole, rest = dividend.divide(divisor)
        if rest.constant is not None and divisor.constant is not None:
            return whole + rest.constant // divisor.constant
        if not rest.terms or (self.nonnegative(rest) and self.below(rest, divisor)):
            return whole
        match tuple(rest.terms.items()):
            case (((Binary("//", inner, text),), 1),):
                first = self.polynomial(text)
                if self.positive(first) and self.positive(divisor):
                    return whole + self.quotient(self.polynomial(inner), first * divisor)
        return whole + Polynomial.atom(Binary("//", expression(rest), expression(divisor)))

    def remainder(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """`dividend % divisor`, with the sign of the divisor; multiples of the divisor vanish."""
        if divisor.constant == 0:
            return Polynomial.atom(Binary("%", expression(dividend), expression(divisor)))
        if divisor.constant is not None and divisor.constant < 0:
            return -self.remainder(-dividend, -divisor)
        _, rest = self._without_remainders(dividend, divisor).divide(divisor)
        if rest.constant is not None and divisor.constant is not None:
            return Polynomial.integer(rest.constant % divisor.constant)
        if not rest.terms or (self.nonnegative(rest) and self.below(rest, divisor)):
            return rest
        return Polynomial.atom(Binary("%", expression(rest), expression(divisor)))

    def _without_remainders(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """Return the dividend with `x` for every `x % c` that a whole number of divisors makes the same."""
        total = _ZERO
        for monomial, c in dividend.terms.items():
            match monomial:
                case (Binary("%", left, right),) if not (self.polynomial(right) * c).divide(divisor)[1].terms:
                    total += self.polynomial(left) * c
                case _:
                    total += Polynomial({monomial: c})
        return total

    def floor(self, value: Polynomial, divisor: Polynomial) -> Polynomial:
        """`value // divisor` for sizes, plain if the rest is a number."""
        return _floor_divide(value, divisor) or self.quotient(value, divisor)


def is_size(node: Expression) -> bool:
    """Return whether a node is made of extents alone, in a way that it is never negative."""
    match node:
        case Extent():
            return True
        case Number(int(value)):
            return value >= 0
        case Binary("+" | "*" | "//" | "%", left, right):
            return is_size(left) and is_size(right)
        case Call("maximum", (left, right)):
            return is_size(left) and is_size(right)
        case _:
            return False


def at_least_one(size: Polynomial) -> Polynomial:
    """Return the size, or 1 if it is 0 although no extent is, so that it can divide."""
    if is_positive(size):
        return size
    return Polynomial.atom(Call("maximum", (expression(size), Number(1))))


def is_positive(polynomial: Polynomial) -> bool:
    """Return whether a size is positive wherever no extent is 0, so that there is something to index."""
    terms = polynomial.terms.items()
    return bool(terms) and all(
        c > 0 and all(isinstance(a, Extent) for a in monomial) for monomial, c in terms
    )


def _plainly_nonnegative(polynomial: Polynomial) -> bool:
    return all(c > 0 and all(is_size(atom) for atom in monomial) for monomial, c in polynomial.terms.items())


def _floor_divide(value: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """`value // divisor` if the rest is a number and the result therefore plain."""
    whole, rest = value.divide(divisor)
    if rest.constant is None:
        return None
    if divisor.constant is not None:
        return whole + rest.constant // divisor.constant
    if rest.constant in (0, -1):
        return whole + rest.constant
    return None


def expression(polynomial: Polynomial) -> Expression:
    """Return a polynomial as a person would write it: `2 * x - dx + 1`."""
    terms = sorted(polynomial.terms.items(), key=lambda term: _size_last(term[0]))
    first = next((i for i, (_, c) in enumerate(terms) if c > 0), 0)
    terms = [terms[first], *terms[:first], *terms[first + 1 :]] if terms else []
    result: Expression | None = None
    for monomial, c in terms:
        if result is None:
            result = _product(monomial, c)
        elif c > 0:
            result = Binary("+", result, _product(monomial, c))
        else:
            result = Binary("-", result, _product(monomial, -c))
    return Number(0) if result is None else result


def _size_last(monomial: Monomial) -> int:
    if not monomial:
        return 2
    return int(all(is_size(atom) for atom in monomial))


def _product(monomial: Monomial, coefficient: int) -> Expression:
    if not monomial:
        return Number(coefficient)
    result: Expression | None = None if abs(coefficient) == 1 else Number(abs(coefficient))
    for atom in sorted(monomial, key=is_size):
        result = atom if result is None else Binary("*", result, atom)
    assert result is not None
    return result if coefficient > 0 else Unary("-", result)
