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

from collections.abc import Callable

from ...tdl.ast import Expression, Variable
from ...tdl.traverse import substitute
from ..indices.polynomial import Polynomial, Ranges, at_least_one
from .divisions import open_period, open_quotient, open_remainder, separate_digits, turn_back
from .equations import Equations, Inversion
from .guards import comparison


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
    are read only where the `conditions`, differences of indices, are not negative.
    """
    system = Equations(output_variables, [*output_variables, *reduction_variables], ranges, new_name)
    for axis, (index, position) in enumerate(zip(indices, positions, strict=True)):
        system.add(axis, ranges.polynomial(index) - Polynomial.atom(Variable(position)))
    while system.pending:
        if not any(step(system) for step in _STEPS):
            _compare(system)
    _settle_single(system)
    _forget_implied(system)
    system.found.ranges = system.ranges
    for condition in conditions:
        difference = system.ranges.polynomial(substitute(condition, system.found.values))
        if not system.ranges.nonnegative(difference):
            system.found.guards.append(comparison(">=", difference))
    return system.found


def _solve_bare(system: Equations) -> bool:
    """Solve an equation that says what one variable is."""
    return _solve(system, lambda equation, factor: len(equation.terms) == 2 and factor.constant == 1)


def _solve_linear(system: Equations) -> bool:
    """Solve the clearest equation for its best variable."""
    return _solve(system, lambda equation, factor: True)


def _solve(system: Equations, suits: Callable[[Polynomial, Polynomial], bool]) -> bool:
    choices = [
        (_cost(system, name, factor), equation, name, factor)
        for equation in system.pending
        for name in system.unknown
        if (factor := system.linear(equation.polynomial, name)) is not None
        and suits(equation.polynomial, factor)
    ]
    if not choices:
        return False
    _, equation, name, factor = min(choices, key=lambda choice: choice[0])
    system.pending.remove(equation)
    rest = equation.polynomial - Polynomial.atom(Variable(name)) * factor
    value = system.divided(-rest, factor)
    system.found.solved_by[name] = equation.axis
    system.settle(name, value)
    return True


def _cost(system: Equations, name: str, factor: Polynomial) -> tuple[bool, ...]:
    added = any(binder.name == name for binder in system.found.fresh)
    plain = factor.constant is not None and abs(factor.constant) == 1
    return added, name not in system.outputs, not plain


def _split_digits(system: Equations) -> bool:
    """Make two equations of one whose leading part moves in steps that all the rest stays below."""
    for equation in system.pending:
        for atom in equation.polynomial.atoms:
            parts = _digits(system, equation.polynomial, atom)
            if parts is not None:
                system.pending.remove(equation)
                for part in parts:
                    system.add(equation.axis, part)
                return True
    return False


def _digits(
    system: Equations, equation: Polynomial, atom: Expression
) -> tuple[Polynomial, Polynomial] | None:
    """Return the equations for the leading digit and for the rest; None if `atom` is not such a digit."""
    factor = equation.coefficient(atom)
    if factor is None or len(factor.terms) != 1 or not system.is_unknown(atom):
        return None
    if next(iter(factor.terms.values())) < 0:
        equation, factor = -equation, -factor
    leading = Polynomial.atom(atom)
    rest = system.unknown_terms(equation - leading * factor)
    lowest = system.ranges.bound(rest, upper=False)
    if factor.constant == 1 or lowest is None or not system.ranges.below(rest - lowest, factor):
        return None
    known = rest + leading * factor - equation - lowest
    factor = at_least_one(factor)
    quotient, remainder = system.ranges.quotient(known, factor), system.ranges.remainder(known, factor)
    return leading - quotient, rest - lowest - remainder


def _settle_single(system: Equations) -> None:
    """Free variables of extent 1 are 0."""
    for name in tuple(system.unknown):
        if system.ranges.extents[name].constant == 1:
            system.settle(name, Polynomial.integer(0))


def _forget_implied(system: Equations) -> None:
    """Ask nothing of solved variables that are in range wherever the others are."""
    for variable in system.implied:
        for atom in variable.atoms:
            if isinstance(atom, Variable):
                system.found.values.pop(atom.name, None)


def _compare(system: Equations) -> None:
    """Give up on one equation and keep it as a guard."""
    polynomial = system.pending.pop(0).polynomial
    if polynomial.terms:
        system.found.guards.append(comparison("==", polynomial))


_STEPS = (
    _solve_bare,
    _split_digits,
    _solve_linear,
    separate_digits,
    open_quotient,
    turn_back,
    open_period,
    open_remainder,
)
"""Each takes one equation apart if it can, and returns whether it did. Earlier ones are preferred."""
