"""Find which tensors a search may leave as the terms of a sum, and which operations may read such terms.

An operation reads terms of the tensors in whose sum it is linear: `f(a + b, c + d) = f(a, c) + f(b, d)`. It
does so on every worker of a step, each with its own terms, so this must not repeat arithmetic: its iteration
space is not larger than the largest of its tensors, so each element is visited once.

A tensor may be left in terms if it lives within an iteration, a sum or an operation that reads terms makes
it, and all operations that read it may read terms. Otherwise somebody would have to reduce it anyway. Terms
pay only where they are added up, so some operation among those that pass them on makes fewer elements than
it reads. Implemented in: `summed_inputs` and `visits_once` (operators), `find_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph, Operation
from ...tdl.ast import Reducer

SUBSET_LIMIT = 4
"""The most inputs of an operation of which every subset is tried."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Where terms may be."""

    tensors: frozenset[int] = frozenset()
    """The tensors that may be left in terms, by their numbers in the graph."""

    operators: frozenset[int] = frozenset()
    """The classes of operations that may read terms."""

    summed: Mapping[Bound, frozenset[str]] = field(default_factory=dict)
    """For each of their operators, the parameters of which it reads them."""


def summed_inputs(bound: Bound) -> frozenset[str]:
    """Return the tensors in whose sum an operator is linear; none if there is no such set, or several.

    Of sets that contain each other, the smallest counts.
    """
    names = tuple(dict.fromkeys(bound.reads))
    sizes = range(1, len(names) + 1) if len(names) <= SUBSET_LIMIT else (1, len(names))
    found: list[frozenset[str]] = []
    for size in sizes:
        for subset in map(frozenset, combinations(names, size)):
            if not any(smaller <= subset for smaller in found) and bound.linear_in(subset):
                found.append(subset)
    return found[0] if len(found) == 1 else frozenset()


def visits_once(bound: Bound) -> bool:
    """Tell whether an operator's iteration space is not larger than the largest of its tensors."""
    shapes = [bound.shapes[name] for name in bound.reads] + [*bound.output_shapes]
    return prod(bound.extents.values()) <= max(map(prod, shapes))


def find_sums(graph: Graph, operation_class: Sequence[int]) -> Sums:
    """Return the tensors that may be left in terms, and the classes of operations that may read them."""
    known: dict[Bound, frozenset[str]] = {}
    for operation in graph.operations:
        bound = operation.bound
        if bound not in known:
            known[bound] = summed_inputs(bound) if visits_once(bound) else frozenset()
    flow = _Flow(graph, operation_class, known)
    tensors, reading = flow.possible()
    return flow.worthwhile(tensors, reading)


@dataclass(frozen=True, slots=True)
class _Flow:
    """The ways that terms could take through a graph."""

    graph: Graph
    """The graph."""

    operation_class: Sequence[int]
    """For each operation, the number of its class."""

    summed: Mapping[Bound, frozenset[str]]
    """For each operator, the parameters that it may read in terms."""

    def possible(self) -> tuple[set[int], set[int]]:
        """Return the most tensors and classes of operations that agree with each other."""
        members: dict[int, list[Operation]] = {}
        readers: list[list[Operation]] = [[] for _ in self.graph.tensors]
        maker: dict[int, Operation] = {}
        for operation in self.graph.operations:
            members.setdefault(self.operation_class[operation.index], []).append(operation)
            for tensor in set(operation.inputs):
                readers[tensor].append(operation)
            maker |= dict.fromkeys(operation.outputs, operation)
        overwritten = {tensor.alias for tensor in self.graph.tensors} | set(self.graph.outputs)
        tensors = {
            tensor.index
            for tensor in self.graph.tensors
            if tensor.index in maker
            and readers[tensor.index]
            and tensor.alias is None
            and tensor.index not in overwritten
            and not tensor.role.persistent
        }
        reading = {number for number, group in members.items() if self.summed[group[0].bound]}
        sums = {bound: _makes_sums(bound) for bound in self.summed}
        terms = {
            number: [self._terms(operation) for operation in members[number]] for number in sorted(reading)
        }
        waiting = list(members)
        while waiting:
            number = waiting.pop()
            lost: list[int] = []
            if number in reading:
                if not all(map(tensors.issuperset, terms[number])):
                    reading.discard(number)
                    waiting.append(number)
                    continue
                for operation, read in zip(members[number], terms[number], strict=True):
                    lost += [tensor for tensor in operation.inputs if tensor not in read]
            else:
                for operation in members[number]:
                    lost += operation.inputs
                    if not sums[operation.bound]:
                        lost += operation.outputs
            for tensor in tensors.intersection(lost):
                tensors.discard(tensor)
                affected = {self.operation_class[each.index] for each in readers[tensor]}
                waiting += affected & reading
        return tensors, reading

    def worthwhile(self, tensors: set[int], reading: set[int]) -> Sums:
        """Return those among which some operation adds terms up."""
        leader = {tensor: tensor for tensor in tensors}

        def found(tensor: int) -> int:
            while leader[tensor] != tensor:
                leader[tensor] = tensor = leader[leader[tensor]]
            return tensor

        first: dict[int, int] = {}
        adding: list[int] = []
        size = [prod(tensor.shape) for tensor in self.graph.tensors]
        for operation in self.graph.operations:
            number = self.operation_class[operation.index]
            if number not in reading:
                continue
            terms = self._terms(operation)
            for tensor in {*terms, *operation.outputs} & tensors:
                leader[found(tensor)] = found(first.setdefault(number, tensor))
            if sum(size[tensor] for tensor in terms) > sum(size[tensor] for tensor in operation.outputs):
                adding.append(first[number])
        worth = {found(tensor) for tensor in adding}
        return Sums(
            frozenset(tensor for tensor in tensors if found(tensor) in worth),
            frozenset(number for number, tensor in first.items() if found(tensor) in worth),
            self.summed,
        )

    def _terms(self, operation: Operation) -> set[int]:
        """Return the tensors whose terms an operation may read; none if it would also read them whole."""
        made = {self.graph.tensors[output].dtype for output in operation.outputs}
        summed = self.summed[operation.bound]
        places = operation.bound.read_places
        whole = {operation.inputs[place] for place, name in places if name not in summed}
        terms = {operation.inputs[place] for place, name in places if name in summed}
        if whole & terms or {self.graph.tensors[tensor].dtype for tensor in terms} != made:
            return set()
        return terms


def _makes_sums(bound: Bound) -> bool:
    """Tell whether a reduction can be split, and every such reduction is a sum."""
    found = {bound.reducer(variable) for variable in bound.variables if bound.kind(variable) == "reduce"}
    return found == {Reducer.SUM}
