"""Equations between index variables and positions, and what is known of the variables so far.

Taking an equation apart is for others (`inversion`, `divisions`). Here variables get values, which are put
into everything else that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...tdl.ast import Binary, Binder, Expression, Number, Variable
from ...tdl.traverse import substitute, walk
from ..indices.polynomial import Polynomial, Ranges, expression, is_positive


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


@dataclass(frozen=True, slots=True)
class AccessEquation:
    """`polynomial == 0`, which comes from a dimension's index."""

    axis: int
    polynomial: Polynomial


@dataclass(slots=True)
class Equations:
    """The `pending` equations, and the variables that are still unknown.

    `outputs` are the output variables. `new_name(base)` gives unused names. `implied` are new
    variables that are in range if those are that they are parts of.
    """

    outputs: tuple[str, ...]
    unknown: list[str]
    ranges: Ranges
    new_name: Callable[[str], str]
    found: Inversion = field(default_factory=Inversion)
    pending: list[AccessEquation] = field(default_factory=list)
    implied: list[Polynomial] = field(default_factory=list)

    def add(self, axis: int, polynomial: Polynomial) -> None:
        """Add `polynomial == 0`."""
        self.pending.append(AccessEquation(axis, polynomial))

    def linear(self, equation: Polynomial, name: str) -> Polynomial | None:
        """Return the factor of a variable that occurs once in an equation, not 0 and of a sign that is
        certain.
        """
        variable = Variable(name)
        factor = equation.coefficient(variable)
        if factor is None or not divides(factor):
            return None
        inside = (node for atom in equation.atoms if atom != variable for node in walk(atom))
        return None if any(node == variable for node in inside) else factor

    def is_unknown(self, node: Expression) -> bool:
        """Return whether the expression holds an unknown variable."""
        return any(isinstance(part, Variable) and part.name in self.unknown for part in walk(node))

    def unknown_terms(self, polynomial: Polynomial) -> Polynomial:
        """Return the terms that hold an unknown variable."""
        return Polynomial.of(
            (monomial, c)
            for monomial, c in polynomial.terms.items()
            if any(self.is_unknown(atom) for atom in monomial)
        )

    def divided(self, dividend: Polynomial, divisor: Polynomial) -> Polynomial:
        """Return `dividend / divisor`, guarded by a comparison if the rest may not be zero."""
        if next(iter(divisor.terms.values())) < 0:
            dividend, divisor = -dividend, -divisor
        rest = self.ranges.remainder(dividend, divisor)
        if rest.terms and divisor.constant != 1:
            self.found.guards.append(Binary("==", expression(rest), Number(0)))
        return self.ranges.quotient(dividend, divisor)

    def settle(self, name: str, value: Polynomial) -> None:
        """Give an unknown variable its value, in the other equations, values and guards too."""
        self.unknown.remove(name)
        known = {name: expression(value)}
        for other, old in self.found.values.items():
            self.found.values[other] = self._rewritten(old, known)
        guards = (self._rewritten_guard(guard, known) for guard in self.found.guards)
        self.found.guards[:] = [guard for guard in guards if guard.left != guard.right]
        self.found.values[name] = known[name]
        self.pending[:] = [
            AccessEquation(
                other.axis, self.ranges.polynomial(substitute(expression(other.polynomial), known))
            )
            for other in self.pending
        ]
        self.found.fresh[:] = [binder for binder in self.found.fresh if binder.name != name]

    def _rewritten(self, node: Expression, known: Mapping[str, Expression]) -> Expression:
        new = substitute(node, known)
        return node if new is node else expression(self.ranges.polynomial(new))

    def _rewritten_guard(self, guard: Binary, known: Mapping[str, Expression]) -> Binary:
        return Binary(guard.operator, self._rewritten(guard.left, known), self._rewritten(guard.right, known))

    def replace(self, equation: AccessEquation, polynomial: Polynomial) -> None:
        """Put another equation of the same dimension in the place of one."""
        self.pending[self.pending.index(equation)] = AccessEquation(equation.axis, polynomial)

    def new(self, base: str, extent: Polynomial) -> Polynomial:
        """Return a new unknown variable."""
        name = self.new_name(base)
        self.unknown.append(name)
        self.found.fresh.append(Binder(name, expression(extent)))
        self.ranges = Ranges({**self.ranges.extents, name: extent}, self.ranges.canonical)
        return Polynomial.atom(Variable(name))


def divides(factor: Polynomial) -> bool:
    """Return whether an equation can be divided by a factor: one term, which is not 0."""
    return len(factor.terms) == 1 and (is_positive(factor) or is_positive(-factor))
