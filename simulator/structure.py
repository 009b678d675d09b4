"""Versions that operations touch, which all simulations of a graph share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import ref

from ..dataflow.graph import Graph, Operation
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


class _Touch(NamedTuple):
    """How an operation touches versions."""

    like: Like
    """Its kind."""

    versions: tuple[int, ...]
    """The versions, see `Structure.touched`."""

    storage: tuple[int, ...]
    """The versions whose storage those have."""

    roots: tuple[int, ...]
    """The same, each once."""


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


class Structures:
    """The structures of one graph with several copies and orders, which share what is common to them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = ref(graph)
        """The graph, which may not be there any more."""
        self._elements = _elements(graph)
        self._operations = {operation.name: operation.index for operation in graph.operations}
        self._tensors = {tensor.name: tensor.index for tensor in graph.tensors}
        self._known: dict[tuple[int, ...], Like] = {}
        self._without_copies: list[_Touch] = []
        """How each operation touches versions if it reads and makes no copies."""
        self._latest: tuple[object, Structure] | None = None
        """The structure that was found last, after all that it depends on."""

    def of(
        self, graph: Graph, copies: Mapping[str, Sequence[HeldCopy]], order: Sequence[str] | None
    ) -> Structure:
        """Return the structure of the graph. Raises PlanError for copies or an order that cannot be."""
        readers = {name: [(tuple(each.readers), each.source) for each in copies[name]] for name in copies}
        key = readers, None if order is None else tuple(order)
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._structure(graph, copies, order)
        return self._latest[1]

    def _structure(
        self, graph: Graph, copies: Mapping[str, Sequence[HeldCopy]], order: Sequence[str] | None
    ) -> Structure:
        listed = ordered(graph, order)
        versions = number_versions(graph, copies, listed)
        if not self._without_copies:
            plain = versions if not copies else number_versions(graph, {}, listed)
            self._without_copies = [self._touch(plain, operation) for operation in graph.operations]
        touches = [
            self._touch(versions, operation) if versions.read[operation.index] else touch
            for operation, touch in zip(graph.operations, self._without_copies, strict=True)
        ]
        users: list[list[int]] = [[] for _ in versions.tensors]
        for operation, touch in enumerate(touches):
            for root in touch.roots:
                users[root].append(operation)
        likes, touched = [touch.like for touch in touches], [touch.versions for touch in touches]
        joined = net(graph, listed, versions, touched)
        storage = [touch.storage for touch in touches]
        return Structure(self._operations, self._tensors, versions, likes, touched, storage, joined, users)

    def _touch(self, versions: NumberedVersions, operation: Operation) -> _Touch:
        """Return how an operation touches versions."""
        read, made = versions.read_by(operation), versions.made[operation.index]
        others = versions.with_sources(read, made)
        touches = (*others, *made, *operation.outputs)
        storage = tuple([versions.roots[version] for version in touches])
        slots = [touches.index(version) for version in read]
        types = [self._elements[versions.tensors[version]] for version in touches]
        sources = [versions.sources[version] for version in touches]
        at = [touches.index(source) if source != _NONE and source in touches else _NONE for source in sources]
        firsts = list(map(storage.index, storage))
        key = id(operation.bound), len(made), *slots, *at, *firsts, *map(id, types)
        like = self._known.get(key)
        if like is None:
            of = Touched.of(slots, at, len(made), len(operation.outputs), firsts, types)
            like = self._known[key] = Like(of)
        return _Touch(like, touches, storage, tuple(set(storage)))


_latest: list[Structures] = []
"""The structures of the graph that was simulated last: searches simulate many plans of one graph."""


def structures(graph: Graph) -> Structures:
    """Return the structures of a graph."""
    for each in _latest:
        if each.graph() is graph:
            return each
    found = Structures(graph)
    _latest[:] = [found]
    return found


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
