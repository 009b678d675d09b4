"""Collect the extents of a forward description's index variables, for use in its adjoint."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...errors import DescriptionError, OperatorError
from ...support.connected_groups import linked
from ...tdl.ast import (
    Binder,
    Call,
    Description,
    Element,
    Expression,
    Extent,
    Index,
    Lambda,
    Pad,
    ReducerCall,
    Variable,
)
from ...tdl.traverse import Node, children, walk
from ..indices.affine import Affine, normal_form
from ..indices.polynomial import Polynomial, Ranges, expression


def bare_accesses(description: Description, node: Node) -> Iterator[tuple[str, Extent]]:
    """Yield variables that are the whole index of an unpadded access, with the dimension they index.

    Such a variable takes every value of its dimension unless its binder states an extent. `node` is a part of
    the description or of its adjoint.
    """
    pending: list[Node] = [node]
    while pending:
        current = pending.pop()
        match current:
            case Pad(element, value):
                pending.extend(reversed((*element.indices, value)))
                continue
            case Element(tensor, indices):
                for axis, index in enumerate(indices):
                    if (name := _alone(description, index)) is not None:
                        yield name, Extent(tensor, axis)
        pending.extend(reversed(children(current)))


def _alone(description: Description, index: Index) -> str | None:
    """Return the variable that an index is, simplified as binding does; None if it is more than that."""
    try:
        form = normal_form(description, index)
    except DescriptionError:  # not affine, maybe because of attributes without values
        return None
    return form.bare if isinstance(form, Affine) else None


@dataclass(frozen=True, slots=True)
class KnownExtents:
    """The extents of a forward description's index variables."""

    description: Description
    """The forward description."""

    produced: Mapping[str, tuple[Extent, ...]]
    """By output variable, the dimensions of the head gradients that it indexes."""

    known: Mapping[str, Expression]
    """By variable, its extent, made of dimensions, attributes and numbers. A variable whose extent does not
    follow from the shapes is not in it."""

    stated: frozenset[str]
    """The variables whose extent is stated by a binder."""

    names: Mapping[Extent, Extent]
    """By dimension, the one that stands for all dimensions that one variable makes equal."""

    def expression(self, variable: str, heads: Container[str] = ()) -> Expression:
        """Return an extent, as a dimension of one of `heads` if possible.

        Raises OperatorError if the extent does not follow from the shapes.
        """
        for extent in self.produced.get(variable, ()):
            if extent.tensor in heads:
                return extent
        if variable not in self.known:
            raise OperatorError(
                f"{self.description.name} has no derived gradient: the extent of {variable} does not follow "
                f"from the shapes; state it, as in `lambda {variable}=tensor.shape[0]: ...`"
            )
        return self.known[variable]

    def follows(self, variable: str, filled: Iterable[Extent]) -> bool:
        """Return whether the extent follows from the dimensions that the variable fills in an adjoint.

        A stated extent may be less than a dimension of the description's tensors, so it only follows from
        those of gradients and outputs.
        """
        own = set(self.description.tensor_names) if variable in self.stated else set()
        tensors = {extent.tensor for extent in filled}
        return bool(tensors) and tensors.isdisjoint(own)

    def canonical(self, polynomial: Polynomial) -> Polynomial:
        """Return the polynomial with one name for each set of dimensions that one variable makes equal."""

        def named(atom: Expression) -> Expression:
            return self.names.get(atom, atom) if isinstance(atom, Extent) else atom

        return Polynomial.of(
            (tuple(sorted(map(named, monomial), key=repr)), c) for monomial, c in polynomial.terms.items()
        )


def forward_extents(description: Description, heads: tuple[str, ...]) -> KnownExtents:
    """Collect extents; `heads` names the head gradient of each output, whose dimensions are known.

    A variable that only occurs in sums, as `dx` in `data[x + dx]`, gets what the other variables leave, the
    least if there are several such sums; those whose other variables are all known come first.
    """
    stated: dict[str, Expression] = {}
    dimensions: dict[str, dict[Extent, None]] = {}
    for binder in _binders(description):
        if binder.extent is not None:
            stated.setdefault(binder.name, binder.extent)
    for output in description.outputs:
        for variable, extent in bare_accesses(description, output.body):
            if variable not in stated:
                dimensions.setdefault(variable, {})[extent] = None
    known: dict[str, Expression] = {**{v: next(iter(e)) for v, e in dimensions.items()}, **stated}
    produced: dict[str, tuple[Extent, ...]] = {}
    for head, output in zip(heads, description.outputs, strict=True):
        for axis, binder in enumerate(output.variables):
            produced[binder.name] = (*produced.get(binder.name, ()), Extent(head, axis))
            known.setdefault(binder.name, Extent(head, axis))
    reductions = dict.fromkeys(binder.name for binder in _binders(description))
    while limits := {name: _limits(description, name, known) for name in reductions if name not in known}:
        solvable = [name for name in limits if any(limits[name])]
        if not solvable:
            break
        variable = next((name for name in solvable if all(limits[name])), solvable[0])
        known[variable] = _smallest([limit for limit in limits[variable] if limit is not None])
    return KnownExtents(description, produced, known, frozenset(stated), _names(dimensions))


def _names(dimensions: Mapping[str, Mapping[Extent, None]]) -> dict[Extent, Extent]:
    """Map every dimension that a variable fills to the first of those that are equal to it."""
    names: dict[Extent, Extent] = {}
    for variables in linked({variable: set(extents) for variable, extents in dimensions.items()}):
        equal = [extent for variable in variables for extent in dimensions[variable]]
        names |= dict.fromkeys(equal, equal[0])
    return names


def _binders(description: Description) -> Iterator[Binder]:
    for node in walk(description):
        if isinstance(node, Lambda | ReducerCall):
            yield from node.variables


def _limits(
    description: Description, variable: str, known: Mapping[str, Expression]
) -> list[Polynomial | None]:
    """Yield for every dimension that limits a variable its largest extent; None if others are unknown.

    Nothing is yielded if the variable does more than add to an index, because its limits are then unknown.
    """
    plain = Ranges({})
    sizes = {name: plain.polynomial(extent) for name, extent in known.items()}
    ranges = Ranges(sizes)
    limits: list[Polynomial | None] = []
    for index, extent in _unpadded(description):
        if Variable(variable) not in walk(index):
            continue
        form = ranges.polynomial(index)
        factor = form.coefficient(Variable(variable))
        if factor is None or factor.constant is None or factor.constant < 1:
            return []
        highest = ranges.bound(form - Polynomial.atom(Variable(variable)) * factor, upper=True)
        room = None if highest is None else Polynomial.atom(extent) - 1 - highest
        limits.append(None if room is None else ranges.quotient(room, factor) + 1)
    return limits


def _unpadded(description: Description) -> Iterator[tuple[Expression, Extent]]:
    """Yield indices of unpadded accesses with the dimensions that they index."""
    padded = {id(node.element) for node in walk(description) if isinstance(node, Pad)}
    for node in walk(description):
        if isinstance(node, Element) and id(node) not in padded:
            for axis, index in enumerate(node.indices):
                if isinstance(index, Expression):
                    yield index, Extent(node.tensor, axis)


def _smallest(limits: list[Polynomial]) -> Expression:
    smallest, *others = dict.fromkeys(expression(limit) for limit in limits)
    for other in others:
        smallest = Call("minimum", (smallest, other))
    return smallest
