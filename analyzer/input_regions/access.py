"""Collect the variables that a description iterates over and the elements that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...tdl import ast
from ...tdl.traverse import Node, children, reads_elements, walk
from ..indices.affine import Affine, Index, constant, nodes, normal_form, variables_of
from ..indices.measures import tree_size
from ..source_errors import error_at

MAX_NODES = 16_000
"""Nodes of the bounds of all indices of a description, see `nodes`, and of the extents of its binders."""

INDEX_NODES = 8
"""Nodes that an index counts besides those of its bounds, if it is not a variable alone."""

MAX_VISITS = 300_000
"""Nodes of a description times its index variables: every variable is judged by a walk over all nodes."""


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

    nodes: int = 0
    """The nodes of the bounds of all indices and of all extents so far."""

    visited: int = 0
    """The nodes of the description so far. Those of indices are not among them."""

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
        _bind(found, output.variables)
    found.output_variables = tuple(dict.fromkeys(binder.name for binder in found.binders))
    for output in description.outputs:
        _collect(found, output.body, tuple(binder.name for binder in output.variables))
    reduced = (binder.name for reduction in found.reductions for binder in reduction.variables)
    found.reduction_variables = tuple(dict.fromkeys(reduced))
    if (visits := found.visited * len(found.variables)) > MAX_VISITS:
        message = (
            f"{len(found.variables):,} index variables in {found.visited:,} parts take {visits:,} visits"
        )
        raise error_at(description, description.outputs[0].span, message, f"the limit is {MAX_VISITS:,}")
    return found


def _collect(found: IterationSpace, body: ast.Expression, enclosing: tuple[str, ...]) -> None:
    """Walk an expression in text order, with an explicit stack: sums of thousands of terms are deep."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(body, enclosing)]
    while stack:
        node, scope = stack.pop()
        below: tuple[ast.Index, ...] = ()
        found.visited += 1
        match node:
            case ast.Variable(name):
                found.values.add(name)
            case ast.Element():
                found.accesses.append(_access(found, node, scope, padded=False))
                below = node.indices
            case ast.Pad(element, value):
                found.accesses.append(_access(found, element, scope, padded=True))
                below = element.indices
                stack.append((value, scope))
            case ast.OpaqueElement(_, arguments, indices):
                reads = tuple(_access(found, argument, scope, padded=False) for argument in arguments)
                found.accesses.extend(reads)
                found.opaques.append(OpaqueUse(reads, indices, scope, node.span))
                below = (*(index for argument in arguments for index in argument.indices), *indices)
            case ast.ReducerCall(_, variables, inner):
                found.reductions.append(node)
                _bind(found, variables)
                stack.append((inner, scope + tuple(binder.name for binder in variables)))
            case _:
                stack.extend((child, scope) for child in reversed(children(node)))
        stack.extend((index, scope) for index in reversed(below) if reads_elements(index))


def _bind(found: IterationSpace, binders: tuple[ast.Binder, ...]) -> None:
    found.binders.extend(binders)
    for binder in binders:
        if binder.extent is not None:
            _spend(found, tree_size(constant(found.description, binder.extent)), binder.span)


def _spend(found: IterationSpace, size: int, span: ast.Span) -> None:
    """Count nodes of bounds or extents. Raises DescriptionError if there are too many so far."""
    found.nodes += size
    if found.nodes > MAX_NODES:
        message = f"all indices and extents up to this one take {found.nodes:,} operations"
        raise error_at(found.description, span, message, f"the limit is {MAX_NODES:,}; use stages")


def _access(found: IterationSpace, element: ast.Element, enclosing: tuple[str, ...], padded: bool) -> Access:
    repeated: list[str | None] = []
    for index in element.indices:
        names = [node.name for node in walk(index) if isinstance(node, ast.Variable)]
        repeated.append(next((name for name in names if names.count(name) > 1), None))
    indices = tuple(normal_form(found.description, index) for index in element.indices)
    bent = [index for index in indices if isinstance(index, Affine) and index.bare is None]
    _spend(found, sum(map(nodes, indices)) + INDEX_NODES * len(bent), element.span)
    return Access(element.tensor, indices, padded, enclosing, tuple(repeated), element.span)
