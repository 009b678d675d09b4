"""The equations of an access, and their solution."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...tdl.ast import Binary, Binder, Expression
from ..indices.polynomial import Polynomial, Ranges


@dataclass(frozen=True, slots=True)
class Equation:
    """`polynomial == 0`, which comes from a dimension's index."""

    axis: int
    polynomial: Polynomial


@dataclass(frozen=True, slots=True)
class Division:
    """A quotient or remainder in an equation."""

    equation: Equation
    """The equation. One of its terms is `factor * atom`."""

    atom: Binary
    """`whole // divisor` or `whole % divisor`."""

    factor: Polynomial
    """The factor of the atom in the equation."""

    whole: Polynomial
    """The dividend."""

    divisor: Polynomial
    """The divisor."""

    @property
    def around(self) -> Polynomial:
        """The rest of the equation."""
        return self.equation.polynomial - Polynomial.atom(self.atom) * self.factor


@dataclass(slots=True)
class Inversion:
    """The solution of an access's equations."""

    values: dict[str, Expression] = field(default_factory=dict)
    """By solved variable, its value in terms of positions and free variables; 0 for a variable of extent
    1."""

    solved_by: dict[str, int] = field(default_factory=dict)
    """By variable that solved an equation, the axis that the equation comes from."""

    guards: list[Binary] = field(default_factory=list)
    """Comparisons. The element is read only if all of them hold."""

    fresh: list[Binder] = field(default_factory=list)
    """New free variables, which the solution introduced."""

    ranges: Ranges = field(default_factory=lambda: Ranges({}))
    """The extents of all variables, those of the new ones included."""
