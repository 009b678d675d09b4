"""Versions that operations touch, which all simulations of a graph share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import ref

from ..dataflow.graph import Graph
from ..operators.stages.bound_operator import BoundOperator
from ..tdl.ast import Reducer
from .build_block import Touched
from .message_times import ElementKind
from .net import Net, net, ordered
from .versions import HeldCopy, NumberedVersions, number_versions

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    """Operations with the same operator and element types that touch versions in the same way."""

    touched: Touched
    """The way in which they touch versions."""


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Kinds of a graph's elements and operations, which all its structures share."""

    elements: list[ElementKind]
    """The elements of each tensor. Equal ones are one object."""

    likes: dict[tuple[int, ...], Like]
    """The kinds of operations that are known."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A graph with the versions of its tensors, in the order in which its operations run."""

    operations: Mapping[str, int]
    """The number of each operation, by its name."""

    tensors: Mapping[str, int]
    """The number of each tensor, by its name."""

    versions: NumberedVersions
    """The versions of all tensors."""

    likes: list[Like]
    """The kind of each operation."""

    touched: list[tuple[int, ...]]
    """The versions that each operation touches: those that others make, each once, and those it makes."""

    storage: list[tuple[int, ...]]
    """The versions whose storage those have."""

    net: Net
    """The same as loops read it."""

    users: list[list[int]]
    """The operations that touch each version, or another one with its storage."""

    kinds: Kinds
    """The kinds of elements and operations."""


_latest: list[tuple[ref[Graph], object, Structure]] = []
"""The structure that was found last, with its graph and what it depends on besides. Searches simulate many
plans of one graph.
"""


def structure(
    graph: Graph, copies: Mapping[str, Sequence[HeldCopy]], order: Sequence[str] | None
) -> Structure:
    """Return the structure of a graph. Raises PlanError for copies or an order that cannot be."""
    readers = {name: [(tuple(each.readers), each.source) for each in copies[name]] for name in copies}
    key = readers, None if order is None else tuple(order)
    kinds = None
    for of, known, found in _latest:
        if of() is graph:
            if known == key:
                return found
            kinds = found.kinds
    found = _structure(graph, copies, order, kinds or Kinds(_elements(graph), {}))
    _latest[:] = [(ref(graph), key, found)]
    return found


def _structure(
    graph: Graph, copies: Mapping[str, Sequence[HeldCopy]], order: Sequence[str] | None, kinds: Kinds
) -> Structure:
    listed = ordered(graph, order)
    versions, elements, known = number_versions(graph, copies, listed), kinds.elements, kinds.likes
    likes: list[Like] = []
    every_touch: list[tuple[int, ...]] = []
    every_storage: list[tuple[int, ...]] = []
    users: list[list[int]] = [[] for _ in versions.tensors]
    for operation in graph.operations:
        read, made = versions.read_by(operation), versions.made[operation.index]
        others = versions.with_sources(read, made)
        touches = (*others, *made, *operation.outputs)
        storage = tuple([versions.roots[version] for version in touches])
        slots = [touches.index(version) for version in read]
        types = [elements[versions.tensors[version]] for version in touches]
        sources = [versions.sources[version] for version in touches]
        at = [touches.index(source) if source != _NONE and source in touches else _NONE for source in sources]
        firsts = list(map(storage.index, storage))
        key = id(operation.bound), len(made), *slots, *at, *firsts, *map(id, types)
        like = known.get(key)
        if like is None:
            like = known[key] = Like(Touched.of(slots, at, len(made), len(operation.outputs), firsts, types))
        likes.append(like)
        every_touch.append(touches)
        every_storage.append(storage)
        for root in set(storage):
            users[root].append(operation.index)
    joined = net(graph, listed, versions, every_touch)
    operations = {operation.name: operation.index for operation in graph.operations}
    tensors = {tensor.name: tensor.index for tensor in graph.tensors}
    return Structure(operations, tensors, versions, likes, every_touch, every_storage, joined, users, kinds)


def _elements(graph: Graph) -> list[ElementKind]:
    """Return the elements of each tensor. Equal ones are one object."""
    reducers = [""] * len(graph.tensors)
    by_operator: dict[int, str] = {}
    for operation in graph.operations:
        reducer = by_operator.get(id(operation.bound))
        if reducer is None:
            reducer = by_operator[id(operation.bound)] = _reducer(operation.bound)
        for output in operation.outputs:
            reducers[output] = reducer
    known: dict[tuple[str, str], ElementKind] = {}
    found = []
    for tensor, reducer in zip(graph.tensors, reducers, strict=True):
        element = known.get((tensor.dtype, reducer))
        if element is None:
            element = known[tensor.dtype, reducer] = ElementKind(tensor.dtype, tensor.itemsize, reducer)
        found.append(element)
    return found


def _reducer(bound: BoundOperator) -> str:
    """Return the name of what combines partial outputs: sums, if they follow from partial inputs alone."""
    found = (bound.reducer(variable) for variable in bound.variables)
    return next((str(each) for each in found if each is not None), Reducer.SUM)
