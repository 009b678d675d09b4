"""Training graphs as graphs of whole operations.

Operations are nodes, and so are tensors that operations overwrite: weights, optimizer states, statistics.
All that overwrites such a tensor shares its worker. Data, and tensors that nothing overwrites, are not nodes:
data arrive where the plan's space says, and workers keep what never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ....dataflow.graph import Graph, Operation
from ....operators.stages.bound_operator import BoundOperator
from ....simulator.times import TaskTimes
from ....support.integer_lists import IntegerLists
from ....support.integers import Integers
from ...layouts.step_split import prime_factors, split_operation
from ...layouts.uses import unread
from .graph import PlacementGraph
from .grouped_plan import Inside


@dataclass(frozen=True, slots=True, eq=False)
class TrainingNodes:
    """A training graph as nodes: first tensors that are overwritten, then operations in the graph's order."""

    graph: Graph
    """The training graph."""

    nodes: PlacementGraph
    """The same as arrays."""

    written: tuple[int, ...]
    """The tensors that are nodes, by node."""

    @property
    def first_operation(self) -> int:
        """Return the node of the first operation."""
        return len(self.written)

    def of_operations(self, per_node: Integers) -> Integers:
        """Return the part of an array of nodes that belongs to operations."""
        return per_node[self.first_operation :]

    def order_of(self, nodes: Integers) -> tuple[str, ...]:
        """Return the names of operations in the order of their nodes."""
        operations = self.graph.operations
        first = self.first_operation
        return tuple([operations[node - first].name for node in nodes.tolist() if node >= first])


OperationTimes = Callable[[Operation], Integers]
"""Return the nanoseconds of an operation on each kind of device: `[kinds]`."""


def training_nodes(graph: Graph, times: OperationTimes) -> TrainingNodes:
    """Return a training graph as nodes that take the given times."""
    roots = graph.roots
    overwritten = {roots[t] for each in graph.operations for t in each.outputs if roots[t] != t}
    written = tuple(sorted(overwritten - {t for each in graph.operations for t in each.outputs}))
    first = len(written)
    makers, tensors = [*range(first)], [*written]
    for operation in graph.operations:
        makers += [first + operation.index] * len(operation.outputs)
        tensors += operation.outputs
    value_of = np.full(len(graph.tensors), -1, np.int64)
    value_of[tensors] = np.arange(len(tensors))
    nbytes = np.array([prod(graph.tensors[t].shape) * graph.tensors[t].itemsize for t in tensors], np.int64)
    own = np.array([roots[t] == t for t in tensors], bool)
    outputs = {roots[tensor] for tensor in graph.outputs}
    lasting = [graph.tensors[t].role.persistent or t in outputs for t in tensors]
    names = [graph.tensors[t].name for t in written] + [each.name for each in graph.operations]
    count = len(names)
    read, readers = _reads(graph, value_of, first)
    columns = [np.zeros((len(times(graph.operations[0])), first), np.int64)] if graph.operations else []
    columns += [times(operation)[:, None] for operation in graph.operations]
    nodes = PlacementGraph(
        tuple(names),
        np.concatenate(columns, axis=1) if columns else np.zeros((1, 0), np.int64),
        np.array(makers, np.int64),
        nbytes,
        nbytes * own,
        IntegerLists.grouped(read, readers, len(tensors)),
        _after(graph, first, count),
        _leaders(graph, written, count),
        np.array(lasting, bool) & own,
        np.zeros(count, np.int64),
    )
    nodes = replace(nodes, in_place=_in_place(graph, nodes, value_of))
    return TrainingNodes(graph, nodes, written)


def _reads(graph: Graph, value_of: Integers, first: int) -> tuple[Integers, Integers]:
    """Return the value and the node of every read of a value by an operation, each once."""
    inputs = [
        dict.fromkeys([operation.inputs[place] for place, _ in operation.bound.read_places])
        for operation in graph.operations
    ]
    counts = [len(each) for each in inputs]
    values = value_of[np.array([tensor for each in inputs for tensor in each], np.int64)]
    readers = np.repeat(np.arange(len(inputs)) + first, counts)
    return values[values >= 0], readers[values >= 0]


def _in_place(graph: Graph, nodes: PlacementGraph, value_of: Integers) -> Integers:
    """Return the outputs and the inputs of the same form whose memory they may take over, as values."""
    known: dict[BoundOperator, tuple[list[int], list[int]]] = {}
    found = []
    for operation in graph.operations:
        bound = operation.bound
        if bound not in known:
            here = [name in bound.in_place for name in bound.description.tensor_names]
            known[bound] = np.flatnonzero(here).tolist(), np.flatnonzero(np.logical_not(here)).tolist()
        places, others = known[bound]
        if not places:
            continue
        elsewhere = {operation.inputs[place] for place in others}
        inputs = dict.fromkeys(operation.inputs[place] for place in places)
        for output in (graph.tensors[tensor] for tensor in operation.outputs):
            for tensor in (graph.tensors[number] for number in inputs if number not in elsewhere):
                if (tensor.shape, tensor.dtype) == (output.shape, output.dtype):
                    found.append((output.index, tensor.index))
    pairs = value_of[np.array(found, np.int64).reshape(-1, 2)]
    free = ((pairs >= 0) & (nodes.stored_bytes[pairs] > 0)).all(axis=1)
    return pairs[free & ~nodes.lasting[pairs[:, 0]]]


def _after(graph: Graph, first: int, count: int) -> IntegerLists:
    """Return for each node those that overwrite what it reads, or take what it makes without reading it."""
    maker = {tensor: each.index for each in graph.operations for tensor in each.outputs}
    readers: dict[int, list[int]] = {}
    for operation in graph.operations:
        for tensor in dict.fromkeys(operation.inputs):
            readers.setdefault(tensor, []).append(operation.index)
    before, then = [], []
    for operation in graph.operations:
        taken = [maker[tensor] for tensor in unread(operation) if tensor in maker]
        before += taken
        then += [operation.index] * len(taken)
        for output in operation.outputs:
            alias = graph.tensors[output].alias
            found = [r for r in readers.get(alias, ()) if r != operation.index] if alias is not None else []
            before += found
            then += [operation.index] * len(found)
    keys, entries = np.array(before, np.int64) + first, np.array(then, np.int64) + first
    return IntegerLists.grouped(keys, entries, count)


def _leaders(graph: Graph, written: Sequence[int], count: int) -> Integers:
    """Return the leader of each node: of all that share a tensor's memory, the operation that runs last."""
    first = len(written)
    leader = np.arange(count)
    node_of = {tensor: node for node, tensor in enumerate(written)}
    maker = {tensor: first + each.index for each in graph.operations for tensor in each.outputs}

    def found(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = int(leader[node])
        return node

    for operation in graph.operations:
        own = first + operation.index
        for tensor in operation.outputs:
            root = graph.roots[tensor]
            if root != tensor:
                leader[found(node_of[root] if root in node_of else maker[root])] = found(own)
    return np.array([found(node) for node in range(count)], np.int64)


def operation_times(graph: Graph, times: TaskTimes, kinds: Integers, inside: Inside) -> OperationTimes:
    """Return the times of operations that a group shares: those of its slowest worker.

    `kinds` are those of the workers, a group's one after the other. Equal operators take equal times.
    """
    firsts = np.unique(kinds, return_index=True)[1]
    known: dict[tuple[object, ...], Integers] = {}
    factors = prime_factors(inside.workers)

    def found(operation: Operation) -> Integers:
        form = inside.operations[operation.name]
        key = operation.bound, form, *[graph.tensors[tensor].dtype for tensor in operation.inputs]
        if key not in known:
            parts = split_operation(operation.bound, form, factors)
            by_kind = [times(operation, np.full(len(parts.workers), first), parts.boxes) for first in firsts]
            busy = [np.bincount(parts.workers, each).max() for each in by_kind]
            known[key] = np.array(busy, np.int64)
        return known[key]

    return found
