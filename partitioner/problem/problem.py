"""The problem of a search: classes of operations and tensors, the links between them, and the objective.

    variables    s[o] for every class o of operations, d[t] for every class t of tensors; for each step the
                 index variable, or dimension, that the step splits, or None
    objective    minimise    sum over the links (o, t, use) of    table[link][s[o], d[t]]
    constraints  s[o] and d[t] are choices that the class has and that the restrictions leave

A class is a set of operations or tensors that must agree. A tensor that overwrites another one takes over its
layout. Tied operations (one cell's copies at different time steps, Tofu section 5.1) share one strategy, and
the tensors that they produce share one layout; in a space that keeps what is made, only those that the same
operations read in the same way do. Every other operation or tensor is a class alone.

Implemented in: `classes.build_problem` (classes), `Problem.links`, `factor_graph.next_choices` and
`joint_choices` (the choices that a class has), `Objective.table` (`moved_bytes`, `transfer_time`),
`restrictions` (constraints).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph, Operation
from ..costs.box_counts import communication
from ..costs.plan_bytes import KnownCounts, count_bytes
from ..costs.reduced_on_the_way import on_the_way
from ..costs.repeated import repeated_bytes
from ..layouts.choices import Counts, OperatorChoices, TensorChoices, operator_choices, tensor_choices
from ..layouts.copies import Copy, versions_read
from ..layouts.step_split import Dimensions, Layout, Strategies
from ..layouts.uses import Use, touched
from ..plans.cost import Cost, CostUnit
from ..solvers.elimination import CostTable
from ..solvers.semiring import Table, TableArithmetic
from .candidates import Tables
from .links import Links
from .restrictions import UNRESTRICTED, Restrictions
from .sequences import by_batch
from .solution import Solution

BufferUse = tuple[int, int, Use]
"""The classes of an operation and of a tensor that it touches, and how."""


class HeldPart(StrEnum):
    """The elements of a link that workers hold while operations compute."""

    FETCHED = "fetched"
    """regions that are read, unless they lie in the worker's part of the home"""
    READ = "read"
    """regions that are read"""
    KEPT = "kept"
    """what workers will read of their own parts of the home, at least the tensor"""
    MADE = "made"
    """regions that are produced"""


class BufferPrice(NamedTuple):
    """The cost of elements that workers hold, see `buffer_elements`."""

    held: HeldPart
    """The elements that cost."""

    price: Fraction
    """The cost of each."""


@dataclass(frozen=True, slots=True)
class BufferPrices:
    """The cost of the buffers that operations need."""

    steps: int
    """The number of steps of a whole plan."""

    of: Mapping[BufferUse, tuple[BufferPrice, ...]]
    """The links with prices."""


class Objective(Protocol):
    """The quantity that a search minimises: its unit, its tables, and the score and bound of whole plans."""

    @property
    def unit(self) -> CostUnit:
        """Return the unit of the integers in the tables."""

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the sizes of the steps over which a search splits its workers."""

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return the cost of every pair of choices; `weight` is the bytes of one element."""

    def alone(self, problem: Problem, number: int, choices: OperatorChoices) -> Counts | None:
        """Return what each choice of one operation of a class costs by itself; None if that is nothing."""

    def total(self, chosen: Chosen) -> int:
        """Score a whole plan: the sum of the tables at its choices, counted independently."""

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Return a lower bound on the cost of every recursive plan; 0 if none is known."""

    def in_any_order(self, groups: int) -> Objective | None:
        """Return an objective whose tables hold the least costs over all orders of later steps.

        The choices of earlier steps make `groups` groups. None if no such costs are known.
        """


@dataclass(frozen=True, slots=True)
class FirstStep:
    """The first step's problem, from which an objective proves a bound for all steps."""

    operators: Sequence[OperatorChoices]
    """The choices of every class of operations."""

    tensors: Sequence[TensorChoices]
    """The choices of every class of tensors."""

    tables: Sequence[CostTable]
    """The step's factor graph."""

    least: Callable[[], int]
    """Solves the step; returns the proven least sum of its tables."""

    arithmetic: TableArithmetic
    """Remembers the sums of these tables that have been computed."""

    steps: int
    """The number of all steps."""


@dataclass(frozen=True)
class Problem:
    """The decisions of a search and its objective."""

    graph: Graph
    """The graph whose operations and tensors are decided."""

    operators: tuple[Bound, ...]
    """For each class of operations, the operator that its members apply."""

    shapes: tuple[Shape, ...]
    """For each class of tensors, the shape of its members."""

    operation_class: tuple[int, ...]
    """For each operation of the graph, the number of its class."""

    tensor_class: tuple[int, ...]
    """For each tensor of the graph, the number of its class."""

    links: Links
    """All pairs of an operation and a tensor between which bytes may move, equal ones merged."""

    objective: Objective
    """The quantity that the search minimises."""

    restrictions: Restrictions = UNRESTRICTED
    """The choices that constraints leave."""

    replicate: bool = False
    """Whether a step may replicate a tensor that it could split: the space that is searched and bounded."""

    prices: Mapping[int, Fraction] = field(default_factory=dict)
    """For classes of tensors, the cost of each element that a worker holds, beyond the objective."""

    buffer_prices: BufferPrices | None = None
    """The cost of buffers that operations need besides homes, beyond the objective; None if they are free."""

    fed: frozenset[int] = frozenset()
    """The classes of tensors that are fed by batch, see `sequences.by_batch`.

    Their choice is what operations read. It is copied from there.
    """

    copied: frozenset[int] = frozenset()
    """The classes of tensors that may have a copy for some of the operations that read them."""

    activations: frozenset[int] = frozenset()
    """Those of them that do not last."""

    unmoved: frozenset[int] = frozenset()
    """Those of `fed` that have no choice, because operations read them where they are fed."""

    priced: bool = False
    """Whether repeated computation has a price, see `costs.repeated`."""

    repeats: frozenset[int] = frozenset()
    """The classes of operations that may repeat what they could split."""

    terms: frozenset[int] = frozenset()
    """The classes of tensors that may be left in terms."""

    reads_terms: frozenset[int] = frozenset()
    """The classes of operations that may read terms."""

    summed: Mapping[Bound, frozenset[str]] = field(default_factory=dict)
    """For each operator that may read terms, the parameters of which it reads them."""

    stops: frozenset[int] = frozenset()
    """The classes of tensors whose partial results may be reduced on their way."""

    bounded: bool = True
    """Whether searches bound the cost of all plans from below; if not, their bound is zero."""

    known_stops: dict[tuple[Bound, Strategies, Use, Layout], Layout] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Layouts with the parts in which results are reduced on their way, by how the results are made."""

    known_repeats: dict[tuple[int, ...], dict[tuple[Bound, Strategies], int]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Prices of what operations repeat that were found, by factors; other prices of memory share them."""

    open_order: int | None = None
    """In a relaxed problem, the number of groups after which the order of steps is open; else None."""

    known_choices: dict[tuple[int, ...], Tables] = field(default_factory=dict, compare=False, repr=False)
    """Choices of one step that were made, by factors; the same problem at other prices shares them."""

    counts_of: dict[tuple[int, ...], KnownCounts] = field(default_factory=dict, compare=False, repr=False)
    """Bytes of plans that were counted, by factors; the same problem at other prices shares them."""

    least_moved: dict[tuple[int, ...], int] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """Lower bounds on the bytes that plans move, by factors."""

    priced_tables: dict[tuple[object, ...], tuple[Table, Table]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """Tables, and the same ones with prices on pairs that cannot be: equal tables stay one object."""

    def split_only(self) -> Problem:
        """Return the problem in which all is split that can be, inputs are read from the parts that are fed,
        and each sum is reduced on its own.
        """
        none = frozenset[int]()
        return replace(self, replicate=False, repeats=none, unmoved=self.fed, terms=none, reads_terms=none)

    def bound(self, first: FirstStep) -> int:
        """Return a lower bound on the cost of every recursive plan; zero if none is wanted."""
        return self.objective.bound(self, first) if self.bounded else 0

    def alone(self, number: int, choices: OperatorChoices) -> Counts:
        """Return what each choice of all operations of a class costs apart from their tensors."""
        found = self.objective.alone(self, number, choices)
        return np.zeros(len(choices.sequences), np.int64) if found is None else found * self.members[number]

    def choices(self, factors: tuple[int, ...]) -> Tables:
        """Return the choices of one step after others, by their sizes, each made once."""
        return self.known_choices.setdefault(factors, Tables(factors))

    def known_counts(self, factors: tuple[int, ...]) -> KnownCounts:
        """Return the bytes of plans that were counted."""
        if factors not in self.counts_of:
            self.counts_of[factors] = KnownCounts(factors)
        return self.counts_of[factors]

    def may_replicate(self, number: int) -> bool:
        """Tell whether a class of tensors may be read from parts that several workers hold."""
        return self.replicate or number in self.fed

    @cached_property
    def members(self) -> list[int]:
        """Return, for each class of operations, the number of its members."""
        counted = Counter(self.operation_class)
        return [counted[number] for number in range(len(self.operators))]

    @cached_property
    def leaders(self) -> list[Operation]:
        """Return, for each class of operations, its first member."""
        found: dict[int, Operation] = {}
        for operation, number in zip(self.graph.operations, self.operation_class, strict=True):
            found.setdefault(number, operation)
        return [found[number] for number in range(len(self.operators))]

    @cached_property
    def itemsizes(self) -> list[int]:
        """Return, for each class of tensors, the bytes of one element of all members that overwrite none."""
        found = [0] * len(self.shapes)
        for tensor, number in zip(self.graph.tensors, self.tensor_class, strict=True):
            found[number] += tensor.itemsize if tensor.alias is None else 0
        return found

    def cost(self, value: int) -> Cost:
        """Return a sum of tables with its unit."""
        return Cost(value, self.objective.unit)

    def __repr__(self) -> str:
        return (
            f"<problem of {self.graph.name!r}: {len(self.operators)} classes of operations, "
            f"{len(self.shapes)} of tensors>"
        )


@dataclass(frozen=True)
class Chosen:
    """Choices for all classes of a problem."""

    problem: Problem
    """The problem."""

    factors: tuple[int, ...]
    """The factor of each step so far."""

    strategies: tuple[Strategies, ...]
    """For each class of operations, its strategy in each step."""

    dimensions: tuple[Dimensions, ...]
    """For each class of tensors, the dimension that each step splits; None if the step replicates."""

    copied: Mapping[int, Dimensions] = field(default_factory=dict)
    """The layout of the copy of each class of tensors that has one."""

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> Chosen:
        """Return the choices of a solution."""
        return cls(problem, solution.factors, solution.strategies, solution.dimensions, solution.copies)

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        """Return the layout of every tensor of the graph."""
        problem = self.problem
        found = [
            Layout(shape, by_batch(shape, self.factors) if number in problem.fed else chosen, self.factors)
            for number, (shape, chosen) in enumerate(zip(problem.shapes, self.dimensions, strict=True))
        ]
        known = problem.known_stops
        for link in problem.links:
            if link.tensor in problem.stops:
                operator = problem.operators[link.operator], self.strategies[link.operator]
                key = *operator, link.use, found[link.tensor]
                if key not in known:
                    known[key] = on_the_way(*key)
                found[link.tensor] = known[key]
        return {
            tensor.name: found[number]
            for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True)
        }

    @cached_property
    def copies(self) -> dict[str, tuple[Copy, ...]]:
        """Return the copies of every tensor that is read elsewhere than it is fed, or copied otherwise."""
        problem, found = self.problem, dict[str, tuple[Copy, ...]]()
        copied = self.copied.keys() | problem.fed
        able = zip(problem.graph.tensors, problem.tensor_class, strict=True)
        tensors = [(tensor, number) for tensor, number in able if number in copied]
        readers: dict[int, list[Operation]] = {tensor.index: [] for tensor, _ in tensors}
        for operation in problem.graph.operations if readers else ():
            if not readers.keys().isdisjoint(operation.inputs):
                for index in readers.keys() & operation.inputs:
                    readers[index].append(operation)
        for tensor, number in tensors:
            listed = readers[tensor.index]
            form = self.copied.get(number, self.dimensions[number])
            if number in problem.fed:
                listed = listed if form != by_batch(tensor.shape, self.factors) else []
            else:
                listed = [each for each in listed if self._reads_less(each, tensor.index, form)]
            if listed:
                found[tensor.name] = (Copy(form, tuple([each.name for each in listed])),)
        return found

    def _reads_less(self, operation: Operation, tensor: int, copy: Dimensions) -> bool:
        """Tell whether an operation fetches less of a tensor from a copy than from its home."""
        problem = self.problem
        use = next((use for index, use in touched(operation) if index == tensor), None)
        if not isinstance(use, tuple):
            return False
        strategies = self.strategies[problem.operation_class[operation.index]]
        number = problem.tensor_class[tensor]
        layouts = tensor_choices(problem.shapes[number], [self.dimensions[number], copy], self.factors)
        operator = operator_choices(operation.bound, [strategies], self.factors)
        home, less = communication(operator, layouts, use)[0]
        return bool(less < home)

    @cached_property
    def operations(self) -> dict[str, Strategies]:
        """Return the strategies of every operation of the graph."""
        problem = self.problem
        return {
            operation.name: self.strategies[number]
            for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True)
        }

    @cached_property
    def repeated_bytes(self) -> int:
        """Return the price of what operations repeat, if they may."""
        problem = self.problem
        if not problem.priced:
            return 0
        known, total = problem.known_repeats.setdefault(self.factors, {}), 0
        for bound, strategies, members in zip(
            problem.operators, self.strategies, problem.members, strict=True
        ):
            price = known.get((bound, strategies))
            if price is None:
                choices = operator_choices(bound, [strategies], self.factors)
                price = known[bound, strategies] = int(repeated_bytes(choices).item())
            total += members * price
        return total

    @cached_property
    def moved_bytes(self) -> list[int]:
        """Count the bytes that move after no step, one, and so on up to all, from the graph alone.

        If not all is written in steps, they count as one.
        """
        graph = self.problem.graph
        versions = versions_read(graph, graph.operations, self.layouts, self.copies)
        known = self.problem.known_counts(self.factors)
        return count_bytes(graph, self.layouts, self.operations, self.factors, versions, known)
