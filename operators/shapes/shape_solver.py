"""Infer unknown shapes from known ones, through a description's indices and stated extents.

If an index is a single variable, as in `weight[h, k]`, the variable's extent *is* the dimension's. So an
extent known from any tensor or output determines all the others, in either direction of the data flow. A
variable whose extent is stated may run over part of a dimension, and implies nothing for tensors that are
read with it. See `windows` for other indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...analyzer.specialize.specialize import specialize
from ...analyzer.specialize.star_expansion import solve_ranks
from ...errors import ShapeError
from ...support.wording import counted
from ...tdl import ast
from ...tdl.ranks import Tensor, scopes
from ...tdl.traverse import walk
from ..stages.definition import Variant
from ..stages.stage import output_names
from .window_equations import ExtentEquation, equations

PartialShape = tuple[int | None, ...] | None
"""A shape with None for unknown extents; None if even the rank is unknown."""


def merge(operator: str, tensor: str, a: PartialShape, b: PartialShape) -> PartialShape:
    """Merge two partial shapes of one tensor. Raises ShapeError if they disagree."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b):
        raise ShapeError(
            f"{operator}: {tensor} has shape {a}, but {b} with {counted(len(b), 'dimension')} is needed"
        )
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is not None and y is not None and x != y:
            raise ShapeError(f"{operator}: dimension {axis} of {tensor} is {x} in {a}, but {y} is needed")
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def solve(variant: Variant, shapes: Mapping[str, PartialShape]) -> dict[str, PartialShape]:
    """Return `shapes` of tensors and outputs (`output_0`, ...), completed by what the description implies.

    Raises ShapeError if a variable would need two extents.
    """
    description = variant.description
    known = _ranks(description, shapes)
    names = description.tensor_names
    if any(known.get(name) is None for name in names):
        return known
    ranks = {name: len(known[name] or ()) for name in names}
    return _Solver(specialize(description, variant.constants, ranks), known).run()


def is_complete(shape: PartialShape) -> bool:
    return shape is not None and None not in shape


def _ranks(description: ast.Description, shapes: Mapping[str, PartialShape]) -> dict[str, PartialShape]:
    """Return `shapes` with ranks solved; the extents of tensors that were unknown are None."""
    names = output_names(len(description.outputs))
    tensors: dict[str, Tensor] = {name: name for name in description.tensor_names}
    tensors |= {name: number for number, name in enumerate(names)}
    ranks = {
        tensor: len(shape) for name, tensor in tensors.items() if (shape := shapes.get(name)) is not None
    }
    solved = solve_ranks(description, ranks)
    known = dict(shapes)
    for name, tensor in tensors.items():
        if known.get(name) is None:
            known[name] = (None,) * solved[tensor] if tensor in solved else None
    return known


def _lambdas(description: ast.Description) -> Iterator[tuple[str, str, ast.Lambda]]:
    """Yield scope of the variables, name of what is produced, lambda; outputs share one scope."""
    for scope, produced, value in scopes(description):
        yield scope, produced if isinstance(produced, str) else output_names(produced + 1)[-1], value


@dataclass(slots=True)
class _Solver:
    """Fills `shapes` and the extents of variables from each other until nothing changes."""

    description: ast.Description
    """The description, with its stages."""

    given: Mapping[str, PartialShape]
    """The shapes that are known in part or whole at the start; None for a tensor of unknown rank."""

    shapes: dict[str, list[int | None]] = field(default_factory=dict)
    """The shapes so far; None for a dimension that is not known."""

    extents: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """By scope and variable, its extent so far and the source of it."""

    stated: set[tuple[str, str]] = field(default_factory=set)
    """The variables, by scope and name, whose binder states an extent."""

    changed: bool = True
    """Whether the last pass found something, so that another one is needed."""

    def run(self) -> dict[str, PartialShape]:
        self.shapes = {name: list(shape) for name, shape in self.given.items() if shape is not None}
        lambdas = list(_lambdas(self.description))
        for scope, name, value in lambdas:
            self.shapes.setdefault(name, [None] * len(value.variables))
            binders = (node for node in walk(value) if isinstance(node, ast.Binder))
            self.stated |= {(scope, binder.name) for binder in binders if binder.extent is not None}
        scopes = dict.fromkeys(scope for scope, _, _ in lambdas)
        related = [
            (scope, equation)
            for scope in scopes
            for equation in equations(value for other, _, value in lambdas if other == scope)
        ]
        while self.changed:
            self.changed = False
            for scope, name, value in lambdas:
                self._visit(scope, name, value)
            for scope, equation in related:
                self._solve(scope, equation)
        solved = {name: tuple(shape) for name, shape in self.shapes.items()}
        return {name: solved.get(name) for name in {**self.given, **solved}}

    def _visit(self, scope: str, name: str, value: ast.Lambda) -> None:
        nodes = list(walk(value))
        padded = {id(node.element) for node in nodes if isinstance(node, ast.Pad)}
        for node in nodes:
            match node:
                case ast.Binder(name=variable, extent=extent) if extent is not None:
                    stated = self._constant(extent)
                    if stated is not None:
                        self._set_extent((scope, variable), stated, "its stated extent")
                case ast.Element(tensor=tensor) if id(node) not in padded:
                    self._relate(tensor, [self._free_variable(scope, index) for index in node.indices])
        self._relate(name, [(scope, binder.name) for binder in value.variables])

    def _solve(self, scope: str, equation: ExtentEquation) -> None:
        """Take over the one extent that follows from an equation."""

        def known(node: ast.Expression) -> int | None:
            if isinstance(node, ast.Variable):
                extent = self.extents.get((scope, node.name))
                return None if extent is None else extent[0]
            return self._constant(node)

        match equation.solve(known):
            case (ast.Variable(name), extent) if extent >= 0:
                self._set_extent((scope, name), extent, equation.place)
            case (ast.Extent(tensor, axis), extent):
                self.shapes[tensor][axis] = extent
                self.changed = True

    def _free_variable(self, scope: str, index: ast.Index) -> tuple[str, str] | None:
        """Return the variable that an index is, if it runs over the whole dimension."""
        if isinstance(index, ast.Variable) and (scope, index.name) not in self.stated:
            return scope, index.name
        return None

    def _relate(self, tensor: str, variables: Sequence[tuple[str, str] | None]) -> None:
        """Equate the extents of a tensor's dimensions with those of the variables, if one is given."""
        shape = self.shapes[tensor]
        for axis, variable in enumerate(variables):
            if variable is None:
                continue
            extent = shape[axis]
            if extent is not None:
                self._set_extent(variable, extent, f"dimension {axis} of {tensor}")
            elif variable in self.extents:
                shape[axis] = self.extents[variable][0]
                self.changed = True

    def _set_extent(self, variable: tuple[str, str], extent: int, source: str) -> None:
        before = self.extents.get(variable)
        if before is None:
            self.extents[variable] = (extent, source)
            self.changed = True
        elif before[0] != extent:
            raise ShapeError(
                f"{self.description.name}: {before[1]} is {before[0]} and {source} is {extent}, but both are "
                f"indexed by {variable[1]!r} and must be equal"
            )

    def _constant(self, node: ast.Expression) -> int | None:
        """Return an extent's value, or None if it depends on a shape that is not known yet."""
        match node:
            case ast.Number(value=int(value)):
                return value
            case ast.Extent(tensor=tensor, axis=axis):
                return self.shapes[tensor][axis]
            case ast.Unary(operator="-", operand=operand):
                positive = self._constant(operand)
                return None if positive is None else -positive
            case ast.Binary(operator=operator, left=left, right=right):
                a, b = self._constant(left), self._constant(right)
                return None if a is None or b is None else _apply(operator, a, b)
            case _:
                return None


def _apply(operator: str, a: int, b: int) -> int | None:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b if b else None
        case "%":
            return a % b if b else None
        case _:
            return None
