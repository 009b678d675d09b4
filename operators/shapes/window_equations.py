"""Equations between extents, from windows and stated extents, for shape inference in both directions.

If neither a binder nor a bare index gives a variable's extent, it is the largest for which the only index
that contains it stays inside the tensor. For `data[x + dx]` that is `x + dx == data.shape[0] + 1`, in
extents. The equation can be solved for any of the three. For `data[2 * x + dx]` only x follows, because
several dimensions give the same x. A stated extent such as `x=a.shape[0] + b.shape[0]` is also an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...analyzer.indices.polynomial import Polynomial, Ranges
from ...tdl import ast
from ...tdl.traverse import walk

Known = Callable[[ast.Expression], int | None]
_PLAIN = Ranges({})


@dataclass(frozen=True, slots=True)
class ExtentEquation:
    """`target == terms // divisor + 1`, or `target == terms` if there is no divisor."""

    target: ast.Variable
    """The variable whose extent is meant."""

    terms: Polynomial
    """A sum of variables, which stand for their extents, and of dimensions."""

    divisor: int
    """The divisor; 0 if there is none."""

    place: str
    """Where the equation comes from, for error messages."""

    def solve(self, known: Known) -> tuple[ast.Expression, int] | None:
        """Return the one unknown that follows from all others, with its value; None if none does."""
        rest, unknown = _substituted(self.terms, known)
        value = known(self.target)
        if not unknown:
            total = rest // self.divisor + 1 if self.divisor else rest
            return (self.target, total) if value is None else None
        if value is None or self.divisor > 1 or len(unknown) > 1:
            return None
        ((monomial, factor),) = unknown.items()
        atom = monomial[0]
        if len(monomial) > 1 or not isinstance(atom, ast.Variable | ast.Extent):
            return None
        wanted = value - 1 - rest if self.divisor else value - rest
        return (atom, wanted // factor) if wanted % factor == 0 and wanted // factor >= 0 else None


def _substituted(terms: Polynomial, known: Known) -> tuple[int, dict[tuple[ast.Expression, ...], int]]:
    """Return the known part of a sum, and what is unknown: monomials with their factors."""
    total = 0
    unknown: dict[tuple[ast.Expression, ...], int] = {}
    for monomial, factor in terms.terms.items():
        left = []
        for atom in monomial:
            value = known(atom)
            if value is None:
                left.append(atom)
            else:
                factor *= value
        if left:
            unknown[tuple(left)] = unknown.get(tuple(left), 0) + factor
        else:
            total += factor
    return total, {monomial: factor for monomial, factor in unknown.items() if factor}


def equations(lambdas: Iterable[ast.Lambda]) -> Iterator[ExtentEquation]:
    """Yield the equations of lambdas that share their variables."""
    nodes = [node for value in lambdas for node in walk(value)]
    padded = {id(node.element) for node in nodes if isinstance(node, ast.Pad)}
    given = set()
    for node in nodes:
        if isinstance(node, ast.Binder) and node.extent is not None:
            given.add(node.name)
            yield ExtentEquation(
                ast.Variable(node.name), _PLAIN.polynomial(node.extent), 0, "its stated extent"
            )
    indices = [
        (index, ast.Extent(node.tensor, axis))
        for node in nodes
        if isinstance(node, ast.Element) and id(node) not in padded
        for axis, index in enumerate(node.indices)
        if isinstance(index, ast.Expression)
    ]
    given |= {index.name for index, _ in indices if isinstance(index, ast.Variable)}
    windows: list[tuple[Polynomial, ast.Extent]] = []
    for index, extent in indices:
        window = _PLAIN.polynomial(index), extent
        if window not in windows:
            windows.append(window)
    for name in dict.fromkeys(node.name for node in nodes if isinstance(node, ast.Binder)):
        mine = [(form, extent) for form, extent in windows if _mentions(form, name)]
        if name not in given and len(mine) == 1:
            form, extent = mine[0]
            divisor = form.terms.get((ast.Variable(name),), 0)
            if divisor > 0 and all(_is_linear(monomial) for monomial in form.terms):
                place = f"the window that reads axis {extent.axis} of {extent.tensor}"
                yield ExtentEquation(ast.Variable(name), _room(form, name, extent), divisor, place)


def _room(form: Polynomial, name: str, extent: ast.Extent) -> Polynomial:
    """Return how far a variable's term may go: to the dimension's last element, less what the others add to
    it.
    """
    room = Polynomial.atom(extent) - 1
    for monomial, factor in form.terms.items():
        match monomial:
            case (ast.Variable(other),):
                if other != name and factor > 0:
                    room -= (Polynomial.atom(monomial[0]) - 1) * factor
            case _:
                room -= Polynomial({monomial: factor})
    return room


def _mentions(form: Polynomial, name: str) -> bool:
    return any(node == ast.Variable(name) for atom in form.atoms for node in walk(atom))


def _is_linear(monomial: tuple[ast.Expression, ...]) -> bool:
    """Return whether a term is one variable, or made of numbers and dimensions."""
    if len(monomial) == 1 and isinstance(monomial[0], ast.Variable):
        return True
    return all(isinstance(atom, ast.Extent) for atom in monomial)
