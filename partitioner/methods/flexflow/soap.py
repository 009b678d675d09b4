"""The SOAP space of a training graph (FlexFlow, section 4): what is decided, and along which dimensions.

    sample       a variable that the batch reaches, from dimension 0 of data
    parameter    a variable that indexes a parameter, its gradient or its state
    attribute    any other variable
    replica      for what overwrites a tensor or has no samples, the number of equal tasks, such as updates
                 where weights live on several workers

The paper splits outputs. A split of the forward pass along a variable of the outputs is one along a sum in
the backward pass, so sums are split there as well. In the forward pass only sums over samples are split,
unless `sums` is true.

A *decision* is an operation. The gradients of one parameter that are added, and their additions, are one
decision: their partial results stay where they are made until all are added, and are reduced once.
Implemented in: `find_soap`. No operator is known by its name: everything follows from `find_sample_axes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from ....analyzer.bind.bound import Bound
from ....dataflow.graph import Graph, Operation, Phase, Role
from ...layouts.forms import Partial
from ...layouts.uses import Use, read, touched
from ...problem.classes import build_problem
from ..meshes.axes import find_sample_axes
from ..meshes.indexing import Indexing, indexing

Label = str | Partial | None
"""A variable of an operation, terms of its inputs, or None for equal tasks."""

_TRAINED = (Role.PARAMETER, Role.STATE, Role.ACCUMULATOR)


class Kind(StrEnum):
    """The meaning of a dimension."""

    SAMPLE = "sample"
    ATTRIBUTE = "attribute"
    PARAMETER = "parameter"
    REPLICA = "replica"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension along which a decision can be split."""

    labels: tuple[Label, ...]
    """Its label in each operation of the decision."""

    kind: Kind
    """Its meaning."""

    extent: int
    """The most parts."""

    reduces: bool
    """Whether the parts are partial results."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Operations that are split together."""

    operations: tuple[int, ...]
    """The numbers of the operations, in the order of the graph."""

    dimensions: tuple[Dimension, ...]
    """The dimensions along which they can be split."""

    terms: frozenset[int]
    """The tensors that stay partial results within the decision."""


@dataclass(frozen=True, slots=True, eq=False)
class Soap:
    """The SOAP space of a graph on a number of workers."""

    graph: Graph
    """The graph."""

    workers: int
    """The number of workers."""

    decisions: tuple[Decision, ...]
    """The decisions, in the order of their first operations."""

    decision_of: tuple[int, ...]
    """The decision of each operation."""

    batch: dict[int, str]
    """The variable that the batch reaches, of operations that have one."""

    indexing: tuple[Indexing, ...]
    """The dimensions that the variables of each operation index."""


@lru_cache(maxsize=1)
def find_soap(graph: Graph, workers: int, sums: bool = False) -> Soap:
    """Return the SOAP space of a graph. The last one is kept: methods ask for that of one graph in turn."""
    return _Finder(graph, workers, sums).run()


class _Finder:
    def __init__(self, graph: Graph, workers: int, sums: bool) -> None:
        self.graph = graph
        self.workers = workers
        self.sums = sums
        alone = replace(graph, operations=tuple(replace(each, tie=None) for each in graph.operations))
        problem = build_problem(alone)
        samples = find_sample_axes(problem)
        known: dict[Bound, Indexing] = {bound: indexing(bound) for bound in dict.fromkeys(problem.operators)}
        self.indexing = tuple(known[each.bound] for each in graph.operations)
        self.uses = [touched(each) for each in graph.operations]
        self.batch = {
            number: samples.variable[of]
            for number, of in enumerate(problem.operation_class)
            if of in samples.variable
        }
        self.terms = {number for number, of in enumerate(problem.tensor_class) if of in samples.terms}
        self._reach_back()
        self.trained = self._trained()

    def run(self) -> Soap:
        """Return the space."""
        groups = self._groups()
        decisions: list[Decision] = []
        decision_of = [0] * len(self.graph.operations)
        for members in groups:
            for number in members:
                decision_of[number] = len(decisions)
            decisions.append(self._sums_of(members) if len(members) > 1 else self._alone(members[0]))
        return Soap(self.graph, self.workers, tuple(decisions), tuple(decision_of), self.batch, self.indexing)

    def _reach_back(self) -> None:
        """Find the batch of operations that read none, such as first states, from those that read them."""
        wanted: dict[int, int] = {}
        for operation in reversed(self.graph.operations):
            number, found = operation.index, self.indexing[operation.index]
            if number not in self.batch:
                for output, tensor in enumerate(operation.outputs):
                    if tensor in wanted:
                        at = [v for v in found.split if wanted[tensor] in found.dimensions(v, output)]
                        if len(at) == 1:
                            self.batch[number] = at[0]
            variable = self.batch.get(number)
            if variable is None:
                continue
            for tensor, use in self.uses[number]:
                places = found.dimensions(variable, use)
                if not isinstance(use, int) and len(places) == 1:
                    wanted.setdefault(tensor, *places)

    def _trained(self) -> set[int]:
        """Return parameters, their states, and what updates read of the same shape: their gradients."""
        found = {tensor.index for tensor in self.graph.tensors if tensor.role in _TRAINED} | self.terms
        for operation in self.graph.operations:
            if self._overwrites(operation):
                shapes = {self.graph.tensors[tensor].shape for tensor in operation.outputs}
                found.update(t for t in operation.inputs if self.graph.tensors[t].shape in shapes)
                found.update(operation.outputs)
        return found

    def _overwrites(self, operation: Operation) -> bool:
        return any(self.graph.tensors[tensor].alias is not None for tensor in operation.outputs)

    def _groups(self) -> list[list[int]]:
        """Return the operations of each decision: those that are joined by terms are one."""
        leader = list(range(len(self.graph.operations)))

        def lead(number: int) -> int:
            while leader[number] != number:
                leader[number] = leader[leader[number]]
                number = leader[number]
            return number

        maker = {tensor: each.index for each in self.graph.operations for tensor in each.outputs}
        for operation in self.graph.operations:
            for tensor in read(operation):
                if tensor in self.terms:
                    first, second = sorted((lead(maker[tensor]), lead(operation.index)))
                    leader[second] = first
        groups: dict[int, list[int]] = {}
        for number in range(len(leader)):
            groups.setdefault(lead(number), []).append(number)
        return list(groups.values())

    def _alone(self, number: int) -> Decision:
        """Return the decision of one operation."""
        operation, found = self.graph.operations[number], self.indexing[number]
        bound = operation.bound
        dimensions = []
        for variable in bound.splits:
            reduces, samples = bound.kind(variable) == "reduce", self.batch.get(number) == variable
            if reduces and not samples and operation.phase is Phase.FORWARD and not self.sums:
                continue
            trained = any(t in self.trained and found.dimensions(variable, u) for t, u in self.uses[number])
            kind = Kind.SAMPLE if samples else Kind.PARAMETER if trained else Kind.ATTRIBUTE
            dimensions.append(Dimension((variable,), kind, bound.extents[variable], reduces))
        if self._overwrites(operation) or not any(each.kind is Kind.SAMPLE for each in dimensions):
            dimensions.append(Dimension((None,), Kind.REPLICA, self.workers, False))
        return Decision((number,), tuple(each for each in dimensions if each.extent > 1), frozenset())

    def _sums_of(self, members: Sequence[int]) -> Decision:
        """Return the decision of gradients that are added: terms, and the dimensions of the sum."""
        operations = [self.graph.operations[number] for number in members]
        within = frozenset(tensor for each in operations for tensor in each.outputs) & self.terms
        adds = [not within.isdisjoint(read(each)) for each in operations]
        samples = tuple(
            Partial() if adding else self.batch[each.index]
            for each, adding in zip(operations, adds, strict=True)
        )
        extent = min(
            each.bound.extents[self.batch[each.index]]
            for each, adding in zip(operations, adds, strict=True)
            if not adding
        )
        dimensions = [Dimension(samples, Kind.SAMPLE, extent, True)]
        shapes = {self.graph.tensors[tensor].shape for each in operations for tensor in each.outputs}
        for place, length in enumerate(shapes.pop() if len(shapes) == 1 else ()):
            labels = [self._label(number, place, within) for number in members]
            if None not in labels:
                dimensions.append(Dimension(tuple(labels), Kind.PARAMETER, length, False))
        return Decision(tuple(members), tuple(each for each in dimensions if each.extent > 1), within)

    def _label(self, number: int, place: int, within: Iterable[int]) -> str | None:
        """Return the variable that alone indexes a dimension of all sums that an operation touches."""
        found, bound = self.indexing[number], self.graph.operations[number].bound
        uses: list[Use] = [
            use for tensor, use in self.uses[number] if isinstance(use, int) or tensor in within
        ]
        at = [
            variable
            for variable in found.split
            if bound.kind(variable) == "concat"
            and all(found.dimensions(variable, use) == {place} for use in uses)
        ]
        return at[0] if len(at) == 1 else None
