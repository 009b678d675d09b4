"""Inverting an access: for which values of the index variables does `t[indices]` read a given element?

Every dimension gives an equation `index = position`. Solving turns index variables into functions of the
positions; what cannot be solved remains as a guard. A variable that no equation determines stays free.

- `v = j` and `a * v + rest = j` are solved for `v`, for `a` other than 1 under the guard that `a` divides.
- `a * q + rest = j` with `0 <= rest < a` is two equations: `q = j // a` and `rest = j % a`.
- In an equation of both `v // c` and `v % c` these become two variables, and `v = c * p + q`.
- `q // c = j` is `q = c * j + r` for a new free variable `r` with `c` values.
- `(q + k) % c = j` with `0 <= q < c` is `q = (j - k) % c`: a rotation is undone by the opposite one.
- `(v + k) % c = j` is `v = c * t + (j - k) % c` for a new free variable `t`, which counts the periods of `v`.
- `q % c = j` is `q = c * t + j` for a new free variable `t` otherwise.
- Anything else, a data-dependent index above all, is compared: `data[b] == j`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...tdl.ast import Binary, Binder, Element, Expression, Number, Variable
from ...tdl.traverse import Node, substitute, walk
from ..indices.polynomial import Polynomial, Ranges, at_least_one, expression, is_positive
from .equations import Division, Equation, Inversion


def invert(
    indices: tuple[Expression, ...],
    positions: tuple[str, ...],
    output_variables: tuple[str, ...],
    reduction_variables: tuple[str, ...],
    ranges: Ranges,
    new_name: Callable[[str], str],
    conditions: tuple[Expression, ...] = (),
) -> Inversion:
    """Solve `indices[d] == positions[d]` for the variables, output variables with preference.

    `ranges` has the extents of all variables and positions. `new_name(base)` gives unused names. Elements
    are read only if the `conditions`, differences of indices, are not negative.
    """
    solver = _Solver(output_variables, [*output_variables, *reduction_variables], ranges, new_name)
    for axis, (index, position) in enumerate(zip(indices, positions, strict=True)):
        solver.add(axis, ranges.polynomial(index) - Polynomial.atom(Variable(position)))
    while solver.equations:
        steps = (
            solver.solve_bare,
            solver.split_digits,
            solver.solve_linear,
            solver.separate_digits,
            solver.open_quotient,
            solver.turn_back,
            solver.open_period,
            solver.open_remainder,
        )
        if not any(step() for step in steps):
            solver.compare()
    solver.settle_single()
    solver.forget_implied()
    solver.found.ranges = solver.ranges
    for condition in conditions:
        difference = solver.ranges.polynomial(substitute(condition, solver.found.values))
        if not solver.ranges.nonnegative(difference):
            solver.found.guards.append(comparison(">=", difference))
    return solver.found


@dataclass(slots=True)
class _Solver:
    """Equations, and the variables that are still unknown. Each step returns whether it changed anything."""

    outputs: tuple[str, ...]
    """The output variables, for which equations are solved by preference."""

    unknown: list[str]
    """The variables without a value so far, new ones included."""

    ranges: Ranges
    """The extents of all variables and positions."""

    new_name: Callable[[str], str]
    """Returns an unused name that is made from the given one."""

    found: Inversion = field(default_factory=Inversion)
    """The solution so far."""

    equations: list[Equation] = field(default_factory=list)
    """The equations that remain to be solved or compared."""

    implied: list[Polynomial] = field(default_factory=list)
    """New variables that are in range whenever the variables that they are parts of are."""

    def add(self, axis: int, polynomial: Polynomial) -> None:
        self.equations.append(Equation(axis, polynomial))

    def solve_bare(self) -> bool:
        """Solve an equation that says what one variable is."""
        return self._solve(lambda equation, factor: len(equation.terms) == 2 and factor.constant == 1)

    def solve_linear(self) -> bool:
        """Solve the clearest equation for its best variable."""
        return self._solve(lambda equation, factor: True)

    def _solve(self, suits: Callable[[Polynomial, Polynomial], bool]) -> bool:
        choices = [
            (self._cost(name, factor), equation, name, factor)
            for equation in self.equations
            for name in self.unknown
            if (factor := self._linear(equation.polynomial, name)) is not None
            and suits(equation.polynomial, factor)
        ]
        if not choices:
            return False
        _, equation, name, factor = min(choices, key=lambda choice: choice[0])
        self.equations.remove(equation)
        rest = equation.polynomial - Polynomial.atom(Variable(name)) * factor
        value = self._divided(-rest, factor)
        self.found.solved_by[name] = equation.axis
        self._settle(name, value)
        return True

    def split_digits(self) -> bool:
        """Make two equations of one whose leading part moves in steps that all the rest stays below."""
        for equation in self.equations:
            for atom in equation.polynomial.atoms:
                parts = self._digits(equation.polynomial, atom)
                if parts is not None:
                    self.equations.remove(equation)
                    for part in parts:
                        self.add(equation.axis, part)
                    return True
        return False

    def _digits(self, equation: Polynomial, atom: Expression) -> tuple[Polynomial, Polynomial] | None:
        """Return the equations for the leading digit and for the rest; None if `atom` is not such a digit."""
        factor = equation.coefficient(atom)
        if factor is None or len(factor.terms) != 1 or not self._is_unknown(atom):
            return None
        if next(iter(factor.terms.values())) < 0:
            equation, factor = -equation, -factor
        leading = Polynomial.atom(atom)
        rest = self._unknown_terms(equation - leading * factor)
        lowest = self.ranges.bound(rest, upper=False)
        if factor.constant == 1 or lowest is None or not self.ranges.below(rest - lowest, factor):
            return None
        known = rest + leading * factor - equation - lowest
        factor = at_least_one(factor)
        quotient, remainder = self.ranges.quotient(known, factor), self.ranges.remainder(known, factor)
        return leading - quotient, rest - lowest - remainder

    def settle_single(self) -> None:
        """Free variables of extent 1 are 0."""
        for name in tuple(self.unknown):
            if self.ranges.extents[name].constant == 1:
                self._settle(name, Polynomial.integer(0))

    def forget_implied(self) -> None:
        """Ask nothing of solved variables that are in range wherever the others are."""
        for variable in self.implied:
            for atom in variable.atoms:
                if isinstance(atom, Variable):
                    self.found.values.pop(atom.name, None)

    def _linear(self, equation: Polynomial, name: str) -> Polynomial | None:
        """Return the factor of a variable that occurs once in an equation, not 0 and of a sign that is
        certain.
        """
        variable = Variable(name)
        factor = equation.coefficient(variable)
        if factor is None or not _divides(factor):
            return None
        inside = (node for atom in equation.atoms if atom != variable for node in walk(atom))
        return None if any(node == variable for node in inside) else factor

    def _cost(self, name: str, factor: Polynomial) -> tuple[bool, ...]:
        added = any(binder.name == name for binder in self.found.fresh)
        plain = factor.constant is not None and abs(factor.constant) == 1
        return added, name not in self.outputs, not plain

    def _is_unknown(self, node: Expression) -> bool:
        return any(isinstance(part, Variable) and part.name in self.unknown for part in walk(node))

    def _unknown_terms(self, polynomial: Polynomial) -> Polynomial:
        return Polynomial.of(
            (monomial, c)
            for monomial, c in polynomial.terms.items()
            if any(self._is_unknown(atom) for atom in monomial)
        )

    def _divided(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """`dividend / divisor`, guarded by a comparison if the rest may not be zero."""
        if next(iter(divisor.terms.values())) < 0:
            dividend, divisor = -dividend, -divisor
        rest = self.ranges.remainder(dividend, divisor)
        if rest.terms and divisor.constant != 1:
            self.found.guards.append(Binary("==", expression(rest), Number(0)))
        return self.ranges.quotient(dividend, divisor)

    def _settle(self, name: str, value: Polynomial) -> None:
        self.unknown.remove(name)
        known = {name: expression(value)}
        for other, old in self.found.values.items():
            self.found.values[other] = self._rewritten(old, known)
        guards = (self._rewritten_guard(guard, known) for guard in self.found.guards)
        self.found.guards[:] = [guard for guard in guards if guard.left != guard.right]
        self.found.values[name] = known[name]
        self.equations[:] = [
            Equation(other.axis, self.ranges.polynomial(substitute(expression(other.polynomial), known)))
            for other in self.equations
        ]
        self.found.fresh[:] = [binder for binder in self.found.fresh if binder.name != name]

    def _rewritten(self, node: Expression, known: Mapping[str, Expression]) -> Expression:
        new = substitute(node, known)
        return node if new is node else expression(self.ranges.polynomial(new))

    def _rewritten_guard(self, guard: Binary, known: Mapping[str, Expression]) -> Binary:
        return Binary(guard.operator, self._rewritten(guard.left, known), self._rewritten(guard.right, known))

    def separate_digits(self) -> bool:
        """Replace a variable `v` by `c * p + q` if one equation has both `v // c` and `v % c`."""
        for quotient in self._divisions("//"):
            variable, divisor = quotient.atom.left, quotient.divisor
            remainder = Binary("%", variable, quotient.atom.right)
            if isinstance(variable, Variable) and remainder in quotient.equation.polynomial.atoms:
                highest = self.ranges.floor(self.ranges.extents[variable.name] - 1, divisor)
                leading, last = self._new("p", highest + 1), self._new("q", divisor)
                self.implied.append(leading)
                self._settle(variable.name, leading * divisor + last)
                return True
        return False

    def open_quotient(self) -> bool:
        """Replace `q // c` by an equation for `q` with a residue."""
        for division in self._divisions("//"):
            if self._solvable(division):
                quotient = self._value(division)
                residue = self._new("r", division.divisor)
                self._replace(division, division.whole - division.divisor * quotient - residue)
                return True
        return False

    def turn_back(self) -> bool:
        """Replace `(q + k) % c`, where `q` has at most `c` values, by `q` and the opposite rotation."""
        for division in self._divisions("%"):
            rest = self._unknown_terms(division.whole)
            lowest = self.ranges.bound(rest, upper=False)
            if lowest is None or not self.ranges.below(rest - lowest, division.divisor):
                continue
            if not self._unknown_terms(division.around).terms:
                turned = self._turned(division, rest - lowest, 1)
                self._replace(division, rest - lowest - turned)
                return True
        return False

    def open_period(self) -> bool:
        """Solve `(v + k) % c` for `v`: the opposite rotation, and as many periods of `c` as `v` has."""
        for division in self._divisions("%"):
            for name in sorted(self.unknown, key=lambda name: name not in self.outputs):
                sign = self._linear(division.whole, name)
                variable = Variable(name)
                around = division.around
                if sign is None or sign.constant not in (1, -1) or variable in _nodes(around):
                    continue
                value = Polynomial.atom(variable)
                turned = self._turned(division, value, sign.constant)
                if not self.ranges.below(value, division.divisor):
                    periods = self.ranges.floor(self.ranges.extents[name] - 1, division.divisor) + 1
                    turned = self._new("t", periods) * division.divisor + turned
                self.found.solved_by[name] = division.equation.axis
                self.equations.remove(division.equation)
                self._settle(name, turned)
                return True
        return False

    def open_remainder(self) -> bool:
        """Replace `q % c` by an equation for `q` with a multiple."""
        for division in self._divisions("%"):
            lowest, highest = (self.ranges.bound(division.whole, upper=upper) for upper in (False, True))
            if lowest is None or highest is None or not self._solvable(division):
                continue
            divisor = division.divisor
            last = self.ranges.floor(highest, divisor)
            first = (
                Polynomial.integer(0)
                if self.ranges.nonnegative(lowest)
                else self.ranges.floor(lowest, divisor)
            )
            residue = self._residue(division)
            multiple = self._new("t", last - first + 1) + first
            self._replace(division, division.whole - divisor * multiple - residue)
            return True
        return False

    def _divisions(self, operator: str) -> Iterator[Division]:
        """Unknown quotients or remainders by positive divisors."""
        for equation in self.equations:
            for atom in equation.polynomial.atoms:
                match atom:
                    case Binary(symbol, left, right) if symbol == operator and self._is_unknown(left):
                        factor = equation.polynomial.coefficient(atom)
                        whole, divisor = self.ranges.polynomial(left), self.ranges.polynomial(right)
                        if factor is not None and _divides(factor) and self.ranges.nonnegative(divisor):
                            yield Division(equation, atom, factor, whole, divisor)

    def _solvable(self, division: Division) -> bool:
        return any(division.whole.coefficient(Variable(name)) is not None for name in self.unknown)

    def _value(self, division: Division) -> Polynomial:
        """Return what the equation says that a quotient or remainder is."""
        return self._divided(-division.around, division.factor)

    def _residue(self, division: Division) -> Polynomial:
        """Return the value of a remainder by the equation, guarded if the remainder may never have it."""
        residue = self._value(division)
        self.found.guards.extend(in_range(residue, division.divisor, self.ranges))
        return residue

    def _turned(self, division: Division, value: Polynomial, sign: int) -> Polynomial:
        """`value` up to multiples of the divisor; it stands in the remainder with `sign` and a shift."""
        shift = division.whole - value * sign
        residue = self._residue(division)
        if not shift.terms and sign > 0:
            return residue
        return self.ranges.remainder((residue - shift) * sign, division.divisor)

    def _replace(self, division: Division, polynomial: Polynomial) -> None:
        place = self.equations.index(division.equation)
        self.equations[place] = Equation(division.equation.axis, polynomial)

    def _new(self, base: str, extent: Polynomial) -> Polynomial:
        name = self.new_name(base)
        self.unknown.append(name)
        self.found.fresh.append(Binder(name, expression(extent)))
        self.ranges = replace(self.ranges, extents={**self.ranges.extents, name: extent})
        return Polynomial.atom(Variable(name))

    def compare(self) -> None:
        """Give up on one equation and keep it as a guard."""
        polynomial = self.equations.pop(0).polynomial
        if polynomial.terms:
            self.found.guards.append(comparison("==", polynomial))


def _divides(factor: Polynomial) -> bool:
    """Return whether an equation can be divided by a factor: one term, which is not 0."""
    return len(factor.terms) == 1 and (is_positive(factor) or is_positive(-factor))


_MIRRORED = {"==": "==", ">=": "<=", "<": ">"}


def comparison(operator: str, difference: Polynomial) -> Binary:
    """`difference == 0` (or `>=`, `<`) with positive terms on both sides and index variables on the left."""
    left = Polynomial({monomial: c for monomial, c in difference.terms.items() if c > 0})
    right = left - difference
    if not _mentions(left) and _mentions(right):
        return Binary(_MIRRORED[operator], expression(right), expression(left))
    return Binary(operator, expression(left), expression(right))


def _mentions(polynomial: Polynomial) -> bool:
    return any(isinstance(node, Variable | Element) for node in _nodes(polynomial))


def _nodes(polynomial: Polynomial) -> Iterator[Node]:
    return (node for atom in polynomial.atoms for node in walk(atom))


def in_range(value: Polynomial, limit: Polynomial, ranges: Ranges) -> list[Binary]:
    """Comparisons that keep `value` in `[0, limit)`, without those that always hold."""
    conditions: list[Binary] = []
    if not ranges.nonnegative(value):
        conditions.append(comparison(">=", value))
    if not ranges.below(value, limit):
        conditions.append(comparison("<", value - limit))
    return conditions
