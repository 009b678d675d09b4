"""Collect the variables that a description iterates over and the elements that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...tdl import ast
from ...tdl.traverse import Node, children, reads_elements, walk
from ..indices.affine import Affine, Index, normal_form, variables_of


@dataclass(frozen=True, slots=True)
class Access:
    """One place where a description reads a tensor."""

    tensor: str
    """The tensor's name."""

    indices: tuple[Index, ...]
    """The normal form of the index of each dimension."""

    padded: bool
    """Whether the access stands in a `pad`, and so may leave the tensor."""

    enclosing: tuple[str, ...]
    """The index variables in scope. If one of them has no values, nothing is read."""

    repeated: tuple[str | None, ...]
    """For each dimension, a variable that its index mentions more than once; None if there is none."""

    span: ast.Span
    """The place in the text of the description."""

    @property
    def shares_variables(self) -> bool:
        """Whether one variable moves more than one dimension, so that the elements read form no box."""
        seen: set[str] = set()
        for index in self.indices:
            if isinstance(index, Affine):
                mine = set(variables_of(index))
                if seen & mine:
                    return True
                seen |= mine
        return False

    def follows(self, variables: tuple[str, ...]) -> bool:
        """Return whether the indices are exactly these variables, in order."""
        return self.indices == tuple(Affine.variable(name) for name in variables)


@dataclass(frozen=True, slots=True)
class OpaqueUse:
    """`function(arguments)[indices]`: one element of the result of an opaque function."""

    arguments: tuple[Access, ...]
    """The accesses of the slices that the function takes."""

    indices: tuple[ast.Index, ...]
    """The indices of the element in the result."""

    enclosing: tuple[str, ...]
    """The index variables in scope."""

    span: ast.Span
    """The place in the text of the description."""


@dataclass(slots=True)
class IterationSpace:
    """Variables and accesses of a description without stages."""

    description: ast.Description
    """The description."""

    output_variables: tuple[str, ...] = ()
    """The names of the outputs' variables, each once, in the order of the text."""

    reduction_variables: tuple[str, ...] = ()
    """The names of the reducers' variables, each once, in the order of the text."""

    binders: list[ast.Binder] = field(default_factory=list)
    """All places that bind a variable."""

    reductions: list[ast.ReducerCall] = field(default_factory=list)
    """All reducers, in the order of the text."""

    accesses: list[Access] = field(default_factory=list)
    """All places that read a tensor, in the order of the text."""

    opaques: list[OpaqueUse] = field(default_factory=list)
    """All uses of opaque functions."""

    values: set[str] = field(default_factory=set)
    """The variables that are used as values, outside of any index."""

    @property
    def variables(self) -> tuple[str, ...]:
        extra = tuple(name for name in self.reduction_variables if name not in self.output_variables)
        return self.output_variables + extra


def iteration(description: ast.Description) -> IterationSpace:
    """Collect variables and accesses. Raises DescriptionError for an index that is not affine."""
    found = IterationSpace(description)
    for output in description.outputs:
        found.binders.extend(output.variables)
    found.output_variables = tuple(dict.fromkeys(binder.name for binder in found.binders))
    for output in description.outputs:
        _collect(found, output.body, tuple(binder.name for binder in output.variables))
    reduced = (binder.name for reduction in found.reductions for binder in reduction.variables)
    found.reduction_variables = tuple(dict.fromkeys(reduced))
    return found


def _collect(found: IterationSpace, body: ast.Expression, enclosing: tuple[str, ...]) -> None:
    """Walk an expression in text order, with an explicit stack: sums of thousands of terms are deep."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(body, enclosing)]
    while stack:
        node, scope = stack.pop()
        below: tuple[ast.Index, ...] = ()
        match node:
            case ast.Variable(name):
                found.values.add(name)
            case ast.Element():
                found.accesses.append(_access(found.description, node, scope, padded=False))
                below = node.indices
            case ast.Pad(element, value):
                found.accesses.append(_access(found.description, element, scope, padded=True))
                below = element.indices
                stack.append((value, scope))
            case ast.OpaqueElement(_, arguments, indices):
                reads = tuple(
                    _access(found.description, argument, scope, padded=False) for argument in arguments
                )
                found.accesses.extend(reads)
                found.opaques.append(OpaqueUse(reads, indices, scope, node.span))
                below = (*(index for argument in arguments for index in argument.indices), *indices)
            case ast.ReducerCall(_, variables, inner):
                found.reductions.append(node)
                found.binders.extend(variables)
                stack.append((inner, scope + tuple(binder.name for binder in variables)))
            case _:
                stack.extend((child, scope) for child in reversed(children(node)))
        stack.extend((index, scope) for index in reversed(below) if reads_elements(index))


def _access(
    description: ast.Description, element: ast.Element, enclosing: tuple[str, ...], padded: bool
) -> Access:
    repeated: list[str | None] = []
    for index in element.indices:
        names = [node.name for node in walk(index) if isinstance(node, ast.Variable)]
        repeated.append(next((name for name in names if names.count(name) > 1), None))
    indices = tuple(normal_form(description, index) for index in element.indices)
    return Access(element.tensor, indices, padded, enclosing, tuple(repeated), element.span)
