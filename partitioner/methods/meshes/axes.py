"""The purpose of every dimension of a training graph: samples, other dimensions of the data, or features.

    batch       dimension 0 of data, and whatever a variable leads it to, operation by operation
    of data     all dimensions of data, likewise; the rest are features
    terms       sums over the batch that all readers can read before they are reduced, such as two gradients
                of one parameter that are added; likewise sums over features
    contracted  parameters that an operation multiplies and sums, keeping one of their dimensions
    tables      parameters of which an operation looks up rows by values

An operation may read a parameter through another tensor of its shape that is made from it alone, such as a
copy in a smaller type.
Everything follows from roles, phases and `indexing`; no operator is known by its name. Classes are those of
the problem: tied operations, and tensors that share storage, agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from ....analyzer.bind.bound import Bound
from ....dataflow.graph import Phase, Role, Tensor
from ....dataflow.parameter_copies import parameters_stood_for
from ....tdl.ast import Reducer
from ...layouts.uses import Use, touched
from ...problem.links import Link
from ...problem.problem import Problem
from .indexing import Indexing, indexing


@dataclass(frozen=True, slots=True)
class SampleAxes:
    """Where the samples of a batch are, by classes of tensors and of operations."""

    dimension: dict[int, int]
    """The dimension of samples, of tensors that have one."""

    variable: dict[int, str]
    """The variable that the samples reach, of operations that have one."""

    terms: frozenset[int]
    """Tensors that may stay sums over the batch, not reduced yet."""


@dataclass(frozen=True, slots=True)
class Axes:
    """The purpose of dimensions and variables, by classes of tensors and of operations."""

    samples: SampleAxes
    """Where the samples are."""

    data_dimensions: dict[int, frozenset[int]]
    """The dimensions that come from those of data."""

    data_variables: dict[int, frozenset[str]]
    """The variables that come from dimensions of data."""

    term_readers: frozenset[int]
    """Operations that read sums over the batch that may stay terms."""

    sums: frozenset[int]
    """Tensors that may stay sums over features, not reduced yet."""

    sum_readers: frozenset[int]
    """Operations that read those."""

    read_by_sample: frozenset[int]
    """Tensors that an operation with samples reads."""

    contracting: dict[int, tuple[str, ...]]
    """For operations that contract a parameter, the variables that index it."""

    contracted: frozenset[int]
    """Parameters that an operation of the forward pass contracts."""

    tables: frozenset[int]
    """Parameters that an operation of the forward pass looks up."""

    table_readers: frozenset[int]
    """Operations that contract a table."""


def find_axes(problem: Problem) -> Axes:
    """Follow the dimensions of data through a problem's graph."""
    return _Walk(problem).run()


def find_sample_axes(problem: Problem) -> SampleAxes:
    """Follow the samples of a batch through a problem's graph, and nothing else."""
    return _Walk(problem).samples()


class _Walk:
    """Follows dimensions from the inputs of operations to their outputs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        known: dict[Bound, Indexing] = {b: indexing(b) for b in dict.fromkeys(problem.operators)}
        self.indexing = [known[bound] for bound in problem.operators]
        self._linear: dict[tuple[Bound, tuple[str, ...]], bool] = {}
        self._known: dict[tuple[Bound, Use, int], tuple[str, ...]] = {}
        self.reads: list[list[Link]] = [[] for _ in problem.operators]
        self.makes: list[list[Link]] = [[] for _ in problem.operators]
        for link in problem.links:
            (self.makes if isinstance(link.use, int) else self.reads)[link.operator].append(link)
        self.inputs: list[set[tuple[tuple[int, Use], ...]]] = [set() for _ in problem.operators]
        for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True):
            read = [
                (problem.tensor_class[t], use) for t, use in touched(operation) if not isinstance(use, int)
            ]
            self.inputs[number].add(tuple(read))
        first: dict[int, Tensor] = {}
        for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True):
            first.setdefault(number, tensor)
        self.tensors: list[Tensor] = [first[number] for number in range(len(problem.shapes))]
        phases: dict[int, Phase] = {}
        for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True):
            phases.setdefault(number, operation.phase)
        self.phases = [phases[number] for number in range(len(problem.operators))]
        classes = problem.tensor_class
        self.parameter = {classes[t]: classes[p] for t, p in parameters_stood_for(problem.graph).items()}
        """The parameter that each tensor stands for."""

    def samples(self) -> SampleAxes:
        dimension, variable = self._batch()
        terms = self._terms({n: self._sums(n, [v]) for n, v in variable.items()}, frozenset())
        return SampleAxes(dimension, variable, terms)

    def run(self) -> Axes:
        samples = self.samples()
        data_dimensions, data_variables = self._data()
        contracting = {
            number: names
            for number, phase in enumerate(self.phases)
            if phase is not Phase.UPDATE
            if (names := self._contracting(number, data_variables[number]))
        }
        parameters = [
            (number, link)
            for number, phase in enumerate(self.phases)
            if phase is Phase.FORWARD
            for link in self.reads[number]
            if link.tensor in self.parameter
        ]
        tables = frozenset(
            tensor
            for number, link in parameters
            if self.indexing[number].is_gathered(link.use) and self._kept(number, link)
            for tensor in (link.tensor, self.parameter[link.tensor])
        )
        reducing = [
            [v for v in bound.splits if bound.kind(v) == "reduce" and v not in data_variables[n]]
            for n, bound in enumerate(self.problem.operators)
        ]
        sums = self._terms(
            {n: self._sums(n, names) for n, names in enumerate(reducing) if names}, samples.terms
        )
        reads = [link for links in self.reads for link in links]
        return Axes(
            samples,
            data_dimensions,
            data_variables,
            frozenset(link.operator for link in reads if link.tensor in samples.terms),
            sums,
            frozenset(link.operator for link in reads if link.tensor in sums),
            frozenset(link.tensor for link in reads if link.operator in samples.variable),
            contracting,
            frozenset(
                tensor
                for number, link in parameters
                if self._contracts(number, link)
                for tensor in (link.tensor, self.parameter[link.tensor])
            ),
            tables,
            frozenset(n for n in contracting if any(link.tensor in tables for link in self.reads[n])),
        )

    def _batch(self) -> tuple[dict[int, int], dict[int, str]]:
        data = [n for n, tensor in enumerate(self.tensors) if tensor.role is Role.DATA and tensor.shape]
        dimension = dict.fromkeys(data, 0)
        variable: dict[int, str] = {}
        size = -1
        while size != len(variable):
            size = len(variable)
            for number, bound in enumerate(self.problem.operators):
                if number not in variable:
                    self._follow_batch(number, bound, dimension, variable)
        return dimension, variable

    def _follow_batch(
        self, number: int, bound: Bound, dimension: dict[int, int], variable: dict[int, str]
    ) -> None:
        """Find the variable that most inputs' samples reach, and the outputs' dimension that it indexes."""
        found, votes = self.indexing[number], Counter[str]()
        for link in self.reads[number]:
            place = dimension.get(link.tensor)
            if place is not None:
                votes.update(self._splitting(bound, found, link.use, place))
        if not votes:
            return
        chosen = max(votes, key=lambda v: (votes[v], bound.kind(v) == "concat"))
        variable[number] = chosen
        for link in self.makes[number]:
            for place in found.dimensions(chosen, link.use):
                dimension.setdefault(link.tensor, place)

    def _splitting(self, bound: Bound, found: Indexing, use: Use, dimension: int) -> tuple[str, ...]:
        """Return the variables that split a dimension of a tensor."""
        key = bound, use, dimension
        if key not in self._known:
            self._known[key] = tuple(v for v in bound.splits if dimension in found.dimensions(v, use))
        return self._known[key]

    def _data(self) -> tuple[dict[int, frozenset[int]], dict[int, frozenset[str]]]:
        dimensions = {
            n: frozenset(range(len(tensor.shape)) if tensor.role is Role.DATA else ())
            for n, tensor in enumerate(self.tensors)
        }
        variables: dict[int, frozenset[str]] = dict.fromkeys(range(len(self.phases)), frozenset())
        changed = True
        while changed:
            changed = False
            for number, found in enumerate(self.indexing):
                reached = frozenset(
                    v
                    for v in found.moved
                    for link in self.reads[number]
                    if found.dimensions(v, link.use, disjoint=False) & dimensions[link.tensor]
                    and not found.dimensions(v, link.use) - dimensions[link.tensor]
                )
                if reached <= variables[number]:
                    continue
                changed = True
                variables[number] |= reached
                for link in self.makes[number]:
                    if not self.tensors[link.tensor].role.persistent:
                        places = (found.dimensions(v, link.use) for v in variables[number])
                        dimensions[link.tensor] |= frozenset(chain.from_iterable(places))
        return dimensions, variables

    def _kept(self, number: int, link: Link) -> bool:
        """Tell whether a variable of the outputs indexes an input."""
        bound, found = self.problem.operators[number], self.indexing[number]
        return any(bound.kind(v) == "concat" and found.dimensions(v, link.use) for v in bound.splits)

    def _contracts(self, number: int, link: Link) -> bool:
        """Tell whether an operation sums over a dimension of an input and keeps another one."""
        bound, found = self.problem.operators[number], self.indexing[number]
        others = [other for other in self.reads[number] if other is not link]
        return self._kept(number, link) and any(
            bound.kind(v) == "reduce"
            and found.dimensions(v, link.use)
            and any(found.dimensions(v, other.use, disjoint=False) for other in others)
            for v in bound.splits
        )

    def _contracting(self, number: int, data_variables: frozenset[str]) -> tuple[str, ...]:
        """Return the variables of features that index a parameter that an operation contracts."""
        bound, found = self.problem.operators[number], self.indexing[number]
        links = [
            link
            for link in self.reads[number]
            if link.tensor in self.parameter and self._contracts(number, link)
        ]
        return tuple(
            v
            for v in bound.splits
            if v not in data_variables and any(found.dimensions(v, link.use) for link in links)
        )

    def _terms(self, summing: dict[int, bool], others: frozenset[int]) -> frozenset[int]:
        """Return the tensors that are sums or made of such, and that all their readers can read as terms.

        `summing` has the operations that sum, and whether their terms are added. `others` are terms as well.
        """
        found = self._reached(summing)
        readers: dict[int, list[int]] = {}
        makers: dict[int, list[int]] = {}
        for link in self.problem.links:
            of_tensor = makers if isinstance(link.use, int) else readers
            of_tensor.setdefault(link.tensor, []).append(link.operator)
        removed = True
        while removed:
            reading = {reader for tensor in found for reader in readers.get(tensor, ())}
            adding = {n for n in reading if self._adds(n, found, others)}
            kept = {
                tensor
                for tensor in found
                if all(summing.get(maker, maker in adding) for maker in makers[tensor])
                and all(reader in adding for reader in readers.get(tensor, [-1]))
            }
            removed, found = kept != found, kept
        return frozenset(found)

    def _reached(self, summing: dict[int, bool]) -> set[int]:
        """Return the tensors that are sums, or made of such."""
        found: set[int] = set()
        size = -1
        while size != len(found):
            size = len(found)
            for number, links in enumerate(self.makes):
                if summing.get(number, any(link.tensor in found for link in self.reads[number])):
                    found.update(link.tensor for link in links)
        lasting = {self.problem.tensor_class[output] for output in self.problem.graph.outputs}
        return {n for n in found - lasting if not self.tensors[n].role.persistent}

    def _sums(self, number: int, variables: Sequence[str]) -> bool:
        return all(self.problem.operators[number].reducer(v) is Reducer.SUM for v in variables)

    def _adds(self, number: int, terms: set[int], others: frozenset[int]) -> bool:
        """Tell whether an operation is linear in all inputs that are terms, visits each element once, and
        keeps their type.
        """
        bound, makes = self.problem.operators[number], [link.tensor for link in self.makes[number]]
        if self.phases[number] is Phase.UPDATE:
            return False
        for inputs in self.inputs[number]:
            found = [(tensor, use) for tensor, use in inputs if tensor in terms or tensor in others]
            if terms.isdisjoint(tensor for tensor, _ in found):
                return False
            tensors = [*makes, *(tensor for tensor, _ in found)]
            names = [name for _, use in found if not isinstance(use, int) for name in use]
            largest = max(prod(self.problem.shapes[tensor]) for tensor in tensors)
            if len({self.tensors[tensor].dtype for tensor in tensors}) > 1:
                return False
            if prod(bound.extents.values()) > largest or not self._is_linear(bound, tuple(names)):
                return False
        return True

    def _is_linear(self, bound: Bound, names: tuple[str, ...]) -> bool:
        key = bound, names
        if key not in self._linear:
            self._linear[key] = bound.linear_in(names)
        return self._linear[key]
