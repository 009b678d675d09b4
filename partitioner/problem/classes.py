"""Build the search's problem from a graph: group operations and tensors that must agree.

The classes are the finest partition of operations, and of tensors, in which

    operations p and q are in one class      if their ties are equal, not None, and so are their operators
    tensors t and u are in one class         if t overwrites u
    the k-th outputs of p and q are in one   if p and q are in one class, for every k; if copies are kept,
                                             only if operations of the same classes read both in the same way,
                                             and both or none of them may be left in terms (`sums.find_sums`)

Such outputs have equal tables, so that they agree in some best plan anyway.

If copies are kept, a tensor may have one if it lasts, and if `READERS` classes of operations read it that do
not overwrite it. With fewer readers it hardly needs one: the home may be where they read it, and what
overwrites the tensor writes there. If the space has copies of activations, a tensor need not last.

Assumes: a tensor has the shape of the one that it overwrites (`dataflow.validate`). Guarantees: all members
of a class have the same shapes, and so the same choices: one table serves them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph, Operation, Phase, Role
from ..layouts.uses import Use, touched
from ..plans.space import SPLIT, Space
from .links import Link, Links
from .moved_bytes import MovedBytes
from .problem import Objective, Problem
from .sums import Sums, find_sums

READERS = 3
"""The number of classes of operations that read a tensor for which a copy may pay."""


def build_problem(graph: Graph, objective: Objective | None = None, space: Space = SPLIT) -> Problem:
    """Group operations by tie, and tensors by alias and by the tied operations that produce them.

    The objective is moved bytes unless another is given.
    """
    classes: dict[tuple[str, Bound] | int, int] = {}
    operation_class = tuple(
        classes.setdefault((op.tie, op.bound) if op.tie is not None else op.index, len(classes))
        for op in graph.operations
    )
    sums = find_sums(graph, operation_class) if space.keep else Sums()
    representatives: dict[int, Operation] = {}
    leader = list(range(len(graph.tensors)))
    same_uses: dict[tuple[int, object, bool], int] = {}
    uses = _uses(graph, operation_class) if space.keep else [None] * len(graph.tensors)
    for tensor in graph.tensors:
        if tensor.alias is not None:
            _join(leader, tensor.index, tensor.alias)
    for op in graph.operations:
        first = representatives.setdefault(operation_class[op.index], op)
        for mine, its in zip(op.outputs, first.outputs, strict=True):
            _join(leader, mine, same_uses.setdefault((its, uses[mine], mine in sums.tensors), mine))
    numbers: dict[int, int] = {}
    tensor_class = tuple(
        numbers.setdefault(_leader(leader, tensor.index), len(numbers)) for tensor in graph.tensors
    )
    shapes: list[Shape] = []
    for tensor, number in zip(graph.tensors, tensor_class, strict=True):
        if number == len(shapes):
            shapes.append(tensor.shape)
        assert shapes[number] == tensor.shape, "aliases and tied outputs of a valid graph agree in shape"
    operators = tuple(op.bound for op in representatives.values())
    data = (number for t, number in zip(graph.tensors, tensor_class, strict=True) if t.role is Role.DATA)
    fed = frozenset(data) if space.feed == "batch" else frozenset[int]()
    links = _links(graph, operation_class, tensor_class)
    copied = _copied(graph, tensor_class, links, space.activations) - fed if space.keep else frozenset[int]()
    lasting = {number for t, number in zip(graph.tensors, tensor_class, strict=True) if t.role.persistent}
    return Problem(
        graph,
        operators,
        tuple(shapes),
        operation_class,
        tensor_class,
        links,
        objective or MovedBytes(),
        replicate=space.replicate,
        fed=fed,
        copied=copied,
        activations=copied - lasting,
        unmoved=frozenset() if space.keep else fed,
        priced=space.keep,
        repeats=frozenset(
            number for number, op in representatives.items() if space.keep and op.phase is not Phase.UPDATE
        ),
        terms=frozenset(tensor_class[tensor] for tensor in sums.tensors),
        reads_terms=sums.operators,
        summed=sums.summed,
        stops=_made_once(links) if space.keep else frozenset(),
    )


def _uses(graph: Graph, operation_class: Sequence[int]) -> list[object]:
    """Return, for each tensor, the classes of operations that touch it, and how."""
    found: list[set[tuple[int, Use]]] = [set() for _ in graph.tensors]
    for operation in graph.operations:
        for tensor, use in touched(operation):
            found[tensor].add((operation_class[operation.index], use))
    return [frozenset(uses) for uses in found]


def _made_once(links: Sequence[Link]) -> frozenset[int]:
    """Return the classes of tensors that are one output of one class of operations."""
    makers = Counter([link.tensor for link in links if isinstance(link.use, int)])
    return frozenset([tensor for tensor, count in makers.items() if count == 1])


def _copied(
    graph: Graph, tensor_class: Sequence[int], links: Sequence[Link], activations: bool
) -> frozenset[int]:
    """Return the classes of tensors of which copies may be kept, see above."""
    overwriting = {tensor.index for tensor in graph.tensors if tensor.alias is not None}
    able = Counter(
        number
        for tensor, number in zip(graph.tensors, tensor_class, strict=True)
        if tensor.alias is None and (activations or tensor.role.persistent)
    )
    read_after = {tensor_class[i] for op in graph.operations for i in op.inputs if i in overwriting}
    readers: dict[int, set[int]] = {number: set() for number, count in able.items() if count == 1}
    for link in links:
        if link.tensor in readers and not isinstance(link.use, int):
            readers[link.tensor].add(link.operator)
    for link in links:
        if link.tensor in readers and isinstance(link.use, int):
            readers[link.tensor].discard(link.operator)
    return frozenset(n for n, found in readers.items() if len(found) >= READERS and n not in read_after)


def _links(graph: Graph, operation_class: Sequence[int], tensor_class: Sequence[int]) -> Links:
    """Return all pairs of a class of operations and one of tensors that touch, with their bytes added."""
    weights: dict[tuple[int, int, Use], int] = {}
    itemsizes = [tensor.itemsize for tensor in graph.tensors]
    for operation, number in zip(graph.operations, operation_class, strict=True):
        for tensor, use in touched(operation):
            key = number, tensor_class[tensor], use
            weights[key] = weights.get(key, 0) + itemsizes[tensor]
    return Links([Link(*key, weight) for key, weight in weights.items()])


def _leader(leader: list[int], index: int) -> int:
    while leader[index] != index:
        leader[index] = leader[leader[index]]
        index = leader[index]
    return index


def _join(leader: list[int], a: int, b: int) -> None:
    first, second = sorted((_leader(leader, a), _leader(leader, b)))
    leader[second] = first
