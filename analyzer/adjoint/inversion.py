"""Inverting an access: for which values of the index variables does `t[indices]` read a given element?

Every dimension gives an equation `index = position`. Solving turns index variables into functions of the
positions; what cannot be solved remains as a guard. A variable that no equation determines stays free.

- `v = j` and `a * v + rest = j` are solved for `v`, for `a` other than 1 under the guard that `a` divides.
- `a * v + rest = j` with `0 <= rest < a` is two equations: `v = j // a` and `rest = j % a`.
- `q // c = j` is `q = c * j + r` for a new free variable `r` with `c` values.
- `q % c = j` is `q = c * t + j` for a new free variable `t`.
- Anything else, a data-dependent index above all, is compared: `data[b] == j`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...tdl.ast import Binary, Binder, Element, Expression, Number, Variable
from ...tdl.traverse import substitute, walk
from .polynomial import Polynomial, Ranges, expression


@dataclass(slots=True)
class Inversion:
    """The solution: `values` of solved variables, in terms of positions and free variables.

    Variables that solved an equation are in `solved_by` with its axis, those of extent 1 are 0. `guards` hold
    where the element is read at all. `fresh` are new free variables and `ranges` knows them too.
    """

    values: dict[str, Expression] = field(default_factory=dict)
    solved_by: dict[str, int] = field(default_factory=dict)
    guards: list[Binary] = field(default_factory=list)
    fresh: list[Binder] = field(default_factory=list)
    ranges: Ranges = field(default_factory=lambda: Ranges({}))


def invert(
    indices: tuple[Expression, ...],
    positions: tuple[str, ...],
    output_variables: tuple[str, ...],
    reduction_variables: tuple[str, ...],
    ranges: Ranges,
    new_name: Callable[[str], str],
) -> Inversion:
    """Solve `indices[d] == positions[d]` for the variables, output variables with preference.

    `ranges` has the extents of all variables and positions. `new_name(base)` gives unused names.
    """
    solver = _Solver(output_variables, [*output_variables, *reduction_variables], ranges, new_name)
    for axis, (index, position) in enumerate(zip(indices, positions, strict=True)):
        solver.equations[axis] = ranges.polynomial(index) - Polynomial.atom(Variable(position))
    while solver.equations:
        if not (solver.solve_best() or solver.open_quotient() or solver.open_remainder()):
            solver.compare()
    solver.settle_single()
    solver.found.ranges = solver.ranges
    return solver.found


@dataclass(slots=True)
class _Solver:
    """Equations `polynomial == 0` by axis, and the variables that are still unknown."""

    outputs: tuple[str, ...]
    unknown: list[str]
    ranges: Ranges
    new_name: Callable[[str], str]
    found: Inversion = field(default_factory=Inversion)
    equations: dict[int, Polynomial] = field(default_factory=dict)

    def solve_best(self) -> bool:
        """Solve the clearest equation for its best variable; False where none can be solved."""
        choices = [
            (self._cost(axis, name, factor), axis, name, factor)
            for axis in self.equations
            for name in self.unknown
            if (factor := self._linear(axis, name)) is not None
        ]
        if not choices:
            return False
        _, axis, name, factor = min(choices, key=lambda choice: choice[0])
        equation = self.equations.pop(axis)
        rest = equation - Polynomial.atom(Variable(name)) * factor
        if self._is_digit(equation, name, factor):
            remaining = self._unknown_terms(rest)
            known = remaining - rest
            self.equations[axis] = remaining - self.ranges.remainder(known, factor)
            value = self.ranges.quotient(known, factor)
        else:
            value = self._divided(-rest, factor)
        self.found.solved_by[name] = axis
        self._settle(name, value)
        return True

    def settle_single(self) -> None:
        """Free variables of extent 1 are 0."""
        for name in tuple(self.unknown):
            if self.ranges.extents[name].constant == 1:
                self._settle(name, Polynomial.integer(0))

    def _linear(self, axis: int, name: str) -> Polynomial | None:
        """The factor of a variable that occurs once in an equation, with a sign that is certain."""
        variable = Variable(name)
        equation = self.equations[axis]
        factor = equation.coefficient(variable)
        if factor is None or len(factor.terms) != 1:
            return None
        inside = (node for atom in equation.atoms if atom != variable for node in walk(atom))
        return None if any(node == variable for node in inside) else factor

    def _cost(self, axis: int, name: str, factor: Polynomial) -> tuple[bool, ...]:
        equation = self.equations[axis]
        bare = len(equation.terms) == 2 and factor.constant == 1
        digit = self._is_digit(equation, name, factor)
        added = any(binder.name == name for binder in self.found.fresh)
        plain = factor.constant is not None and abs(factor.constant) == 1
        return not bare, not digit, added, name not in self.outputs, not plain

    def _is_digit(self, equation: Polynomial, name: str, factor: Polynomial) -> bool:
        """Whether `factor * name` is the leading digit: all other unknowns stay below the factor."""
        if factor.constant == 1:
            return False
        rest = self._unknown_terms(equation - Polynomial.atom(Variable(name)) * factor)
        return self.ranges.nonnegative(rest) and self.ranges.below(rest, factor)

    def _unknown_terms(self, polynomial: Polynomial) -> Polynomial:
        unknown = {Variable(name) for name in self.unknown}
        return Polynomial.of(
            (monomial, c)
            for monomial, c in polynomial.terms.items()
            if any(node in unknown for atom in monomial for node in walk(atom))
        )

    def _divided(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """`dividend / divisor`, guarded by a comparison where the rest may not be zero."""
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
        for other_axis, equation in self.equations.items():
            self.equations[other_axis] = self.ranges.polynomial(substitute(expression(equation), known))
        self.found.fresh[:] = [binder for binder in self.found.fresh if binder.name != name]

    def _rewritten(self, node: Expression, known: Mapping[str, Expression]) -> Expression:
        new = substitute(node, known)
        return node if new is node else expression(self.ranges.polynomial(new))

    def _rewritten_guard(self, guard: Binary, known: Mapping[str, Expression]) -> Binary:
        return Binary(guard.operator, self._rewritten(guard.left, known), self._rewritten(guard.right, known))

    def open_quotient(self) -> bool:
        """Replace `q // c` by an equation for `q` with a residue; False where no equation has one."""
        for axis, equation in self.equations.items():
            for atom in equation.atoms:
                match atom:
                    case Binary("//", left, right):
                        whole, divisor = self.ranges.polynomial(left), self.ranges.polynomial(right)
                        factor = equation.coefficient(atom)
                        if factor is None or not self._can_open(whole, divisor, factor):
                            continue
                        quotient = self._divided(Polynomial.atom(atom) * factor - equation, factor)
                        residue = self._add("r", divisor)
                        self.equations[axis] = whole - divisor * quotient - residue
                        return True
        return False

    def open_remainder(self) -> bool:
        """Replace `q % c` by an equation for `q` with a multiple; False where no equation has one."""
        for axis, equation in self.equations.items():
            for atom in equation.atoms:
                match atom:
                    case Binary("%", left, right):
                        whole, divisor = self.ranges.polynomial(left), self.ranges.polynomial(right)
                        factor = equation.coefficient(atom)
                        highest = self.ranges.highest_quotient(whole, divisor)
                        if factor is None or highest is None or not self._can_open(whole, divisor, factor):
                            continue
                        if not self.ranges.nonnegative(whole):
                            continue
                        residue = self._divided(Polynomial.atom(atom) * factor - equation, factor)
                        self.found.guards.extend(in_range(residue, divisor, self.ranges))
                        multiple = self._add("t", highest + 1)
                        self.equations[axis] = whole - divisor * multiple - residue
                        return True
        return False

    def _can_open(self, whole: Polynomial, divisor: Polynomial, factor: Polynomial) -> bool:
        positive = len(divisor.terms) == 1 and self.ranges.nonnegative(divisor)
        single = len(factor.terms) == 1
        solvable = any(whole.coefficient(Variable(name)) is not None for name in self.unknown)
        return positive and single and solvable

    def _add(self, base: str, extent: Polynomial) -> Polynomial:
        name = self.new_name(base)
        self.unknown.append(name)
        self.found.fresh.append(Binder(name, expression(extent)))
        self.ranges = Ranges({**self.ranges.extents, name: extent}, self.ranges.canonical)
        return Polynomial.atom(Variable(name))

    def compare(self) -> None:
        """Give up on one equation and keep it as a guard."""
        axis = next(iter(self.equations))
        equation = self.equations.pop(axis)
        if equation.terms:
            self.found.guards.append(comparison("==", equation))


_MIRRORED = {"==": "==", ">=": "<=", "<": ">"}


def comparison(operator: str, difference: Polynomial) -> Binary:
    """`difference == 0` (or `>=`, `<`) with positive terms on both sides and index variables on the left."""
    left = Polynomial({monomial: c for monomial, c in difference.terms.items() if c > 0})
    right = left - difference
    if not _mentions(left) and _mentions(right):
        return Binary(_MIRRORED[operator], expression(right), expression(left))
    return Binary(operator, expression(left), expression(right))


def _mentions(polynomial: Polynomial) -> bool:
    return any(isinstance(node, Variable | Element) for atom in polynomial.atoms for node in walk(atom))


def in_range(value: Polynomial, limit: Polynomial, ranges: Ranges) -> list[Binary]:
    """Comparisons that keep `value` in `[0, limit)`, without those that always hold."""
    conditions: list[Binary] = []
    if not ranges.nonnegative(value):
        conditions.append(comparison(">=", value))
    if not ranges.below(value, limit):
        conditions.append(comparison("<", value - limit))
    return conditions
