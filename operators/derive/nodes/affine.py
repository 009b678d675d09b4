"""Integer expressions that are affine in index variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ....analyzer.indices.region import Interval

Ranges = Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """`constant + sum(coefficient * variable)`: sorted by variable, zero coefficients left out."""

    coefficients: tuple[tuple[str, int], ...]
    constant: int

    def interval(self, ranges: Ranges) -> Interval:
        """Return the half-open interval of values it takes; `(0, 0)` if a range is empty."""
        lower = upper = self.constant
        for name, coefficient in self.coefficients:
            first, stop = ranges[name]
            if stop <= first:
                return (0, 0)
            ends = (coefficient * first, coefficient * (stop - 1))
            lower += min(ends)
            upper += max(ends)
        return (lower, upper + 1)


def variable(name: str) -> AffineIndex:
    return AffineIndex(((name, 1),), 0)


def added(a: AffineIndex, b: AffineIndex, factor: int = 1) -> AffineIndex:
    """`a + factor * b`."""
    terms = dict(a.coefficients)
    for name, coefficient in b.coefficients:
        terms[name] = terms.get(name, 0) + factor * coefficient
    kept = tuple(sorted((name, coefficient) for name, coefficient in terms.items() if coefficient))
    return AffineIndex(kept, a.constant + factor * b.constant)


ZERO = AffineIndex((), 0)


def applied(operator: str, a: AffineIndex, b: AffineIndex, ranges: Ranges) -> AffineIndex | None:
    """Return an operator of two affine forms if the result is affine over the given ranges, else None."""
    match operator:
        case "+":
            return added(a, b)
        case "-":
            return added(a, b, -1)
        case "*" if not a.coefficients:
            return added(ZERO, b, a.constant)
        case "*" if not b.coefficients:
            return added(ZERO, a, b.constant)
        case "//" if not b.coefficients and b.constant > 0:
            return _quotient(a, b.constant, ranges)
        case "%" if not b.coefficients and b.constant > 0:
            quotient = _quotient(a, b.constant, ranges)
            return None if quotient is None else added(a, quotient, -b.constant)
        case "maximum" | "minimum":
            less, more = (a, b) if operator == "minimum" else (b, a)
            if compared("<=", a, b, ranges):
                return less
            return more if compared(">=", a, b, ranges) else None
        case _:
            return None


def absolute(a: AffineIndex, ranges: Ranges) -> AffineIndex | None:
    """Return the absolute value if its sign is the same all over the ranges, else None."""
    return applied("maximum", a, added(ZERO, a, -1), ranges)


def _quotient(a: AffineIndex, divisor: int, ranges: Ranges) -> AffineIndex | None:
    """Return floor of `a / divisor`: exact for the multiples, which leaves a rest that must have one
    quotient.
    """
    terms = tuple((name, coefficient) for name, coefficient in a.coefficients if coefficient % divisor == 0)
    rest = tuple((name, coefficient) for name, coefficient in a.coefficients if coefficient % divisor)
    lower, stop = AffineIndex(rest, a.constant).interval(ranges)
    if stop <= lower or lower // divisor != (stop - 1) // divisor:
        return None
    return AffineIndex(
        tuple((name, coefficient // divisor) for name, coefficient in terms),
        lower // divisor,
    )


_HOLDS: Mapping[str, Callable[[Interval], bool | None]] = {
    "<": lambda difference: _decided(difference[1] <= 0, difference[0] >= 0),
    "<=": lambda difference: _decided(difference[1] <= 1, difference[0] > 0),
    ">": lambda difference: _decided(difference[0] > 0, difference[1] <= 1),
    ">=": lambda difference: _decided(difference[0] >= 0, difference[1] <= 0),
    "==": lambda difference: _decided(difference == (0, 1), difference[0] > 0 or difference[1] <= 0),
    "!=": lambda difference: _decided(difference[0] > 0 or difference[1] <= 0, difference == (0, 1)),
}
COMPARISONS = frozenset(_HOLDS)


def _decided(always: bool, never: bool) -> bool | None:
    return True if always else False if never else None


def compared(operator: str, a: AffineIndex, b: AffineIndex, ranges: Ranges) -> bool | None:
    """Return whether a comparison holds everywhere or nowhere in the ranges; None if it varies."""
    lower, stop = added(a, b, -1).interval(ranges)
    return None if stop <= lower else _HOLDS[operator]((lower, stop))
