"""Equations that hold unknown quotients or remainders, taken apart step by step.

Each step looks for an equation that it can take apart, and returns whether there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...tdl.ast import Binary, Variable
from ..indices.polynomial import Polynomial
from .equations import AccessEquation, Equations, divides
from .guards import in_range, nodes


@dataclass(frozen=True, slots=True)
class Division:
    """`whole // divisor` or `whole % divisor`, the atom that an equation holds `factor` times."""

    equation: AccessEquation
    atom: Binary
    factor: Polynomial
    whole: Polynomial
    divisor: Polynomial

    @property
    def around(self) -> Polynomial:
        """The rest of the equation."""
        return self.equation.polynomial - Polynomial.atom(self.atom) * self.factor


def separate_digits(system: Equations) -> bool:
    """Replace a variable `v` by `c * p + q` where one equation has both `v // c` and `v % c`."""
    for quotient in _divisions(system, "//"):
        variable, divisor = quotient.atom.left, quotient.divisor
        remainder = Binary("%", variable, quotient.atom.right)
        if isinstance(variable, Variable) and remainder in quotient.equation.polynomial.atoms:
            highest = system.ranges.floor(system.ranges.extents[variable.name] - 1, divisor)
            leading, last = system.new("p", highest + 1), system.new("q", divisor)
            system.implied.append(leading)
            system.settle(variable.name, leading * divisor + last)
            return True
    return False


def open_quotient(system: Equations) -> bool:
    """Replace `q // c` by an equation for `q` with a residue."""
    for division in _divisions(system, "//"):
        if _solvable(system, division):
            quotient = _value(system, division)
            residue = system.new("r", division.divisor)
            system.replace(division.equation, division.whole - division.divisor * quotient - residue)
            return True
    return False


def turn_back(system: Equations) -> bool:
    """Replace `(q + k) % c`, where `q` has at most `c` values, by `q` and the opposite rotation."""
    for division in _divisions(system, "%"):
        rest = system.unknown_terms(division.whole)
        lowest = system.ranges.bound(rest, upper=False)
        if lowest is None or not system.ranges.below(rest - lowest, division.divisor):
            continue
        if not system.unknown_terms(division.around).terms:
            turned = _turned(system, division, rest - lowest, 1)
            system.replace(division.equation, rest - lowest - turned)
            return True
    return False


def open_period(system: Equations) -> bool:
    """Solve `(v + k) % c` for `v`: the opposite rotation, and as many periods of `c` as `v` has."""
    for division in _divisions(system, "%"):
        for name in sorted(system.unknown, key=lambda name: name not in system.outputs):
            sign = system.linear(division.whole, name)
            variable = Variable(name)
            around = division.around
            if sign is None or sign.constant not in (1, -1) or variable in nodes(around):
                continue
            value = Polynomial.atom(variable)
            turned = _turned(system, division, value, sign.constant)
            if not system.ranges.below(value, division.divisor):
                periods = system.ranges.floor(system.ranges.extents[name] - 1, division.divisor) + 1
                turned = system.new("t", periods) * division.divisor + turned
            system.found.solved_by[name] = division.equation.axis
            system.pending.remove(division.equation)
            system.settle(name, turned)
            return True
    return False


def open_remainder(system: Equations) -> bool:
    """Replace `q % c` by an equation for `q` with a multiple."""
    for division in _divisions(system, "%"):
        lowest, highest = (system.ranges.bound(division.whole, upper=upper) for upper in (False, True))
        if lowest is None or highest is None or not _solvable(system, division):
            continue
        divisor = division.divisor
        last = system.ranges.floor(highest, divisor)
        first = (
            Polynomial.integer(0)
            if system.ranges.nonnegative(lowest)
            else system.ranges.floor(lowest, divisor)
        )
        residue = _residue(system, division)
        multiple = system.new("t", last - first + 1) + first
        system.replace(division.equation, division.whole - divisor * multiple - residue)
        return True
    return False


def _divisions(system: Equations, operator: str) -> Iterator[Division]:
    """Yield unknown quotients or remainders by positive divisors."""
    for equation in system.pending:
        for atom in equation.polynomial.atoms:
            match atom:
                case Binary(symbol, left, right) if symbol == operator and system.is_unknown(left):
                    factor = equation.polynomial.coefficient(atom)
                    whole, divisor = system.ranges.polynomial(left), system.ranges.polynomial(right)
                    if factor is not None and divides(factor) and system.ranges.nonnegative(divisor):
                        yield Division(equation, atom, factor, whole, divisor)


def _solvable(system: Equations, division: Division) -> bool:
    """Return whether the dividend holds an unknown variable as a term."""
    return any(division.whole.coefficient(Variable(name)) is not None for name in system.unknown)


def _value(system: Equations, division: Division) -> Polynomial:
    """Return what the equation says that a quotient or remainder is."""
    return system.divided(-division.around, division.factor)


def _residue(system: Equations, division: Division) -> Polynomial:
    """Return what the equation says that a remainder is, guarded if that may be none of its values."""
    residue = _value(system, division)
    system.found.guards.extend(in_range(residue, division.divisor, system.ranges))
    return residue


def _turned(system: Equations, division: Division, value: Polynomial, sign: int) -> Polynomial:
    """Return `value` up to multiples of the divisor; it stands in the remainder with `sign` and a shift."""
    shift = division.whole - value * sign
    residue = _residue(system, division)
    if not shift.terms and sign > 0:
        return residue
    return system.ranges.remainder((residue - shift) * sign, division.divisor)
