"""The problem of a search: classes of operations and tensors, the links between them, and the objective.

    variables    s[o] for every class o of operations, d[t] for every class t of tensors; for each step the
                 index variable, or dimension, that the step splits, or None
    objective    minimise    sum over the links (o, t, use) of    table[link][s[o], d[t]]
    constraints  s[o] and d[t] are choices that the class has and that the restrictions leave

A class is a set of operations or tensors that must agree. A tensor that overwrites another one takes over its
layout. Tied operations (one cell's copies at different time steps, Tofu section 5.1) share one strategy, and
the tensors that they produce share one layout. Every other operation or tensor is a class alone.

Implemented in: `classes.build_problem` (classes), `Problem.links`, `factor_graph.next_choices` and
`joint_choices` (the choices that a class has), `Objective.table` (`moved_bytes`, `transfer_time`),
`restrictions` (constraints).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Protocol

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph
from ..costs.plan_bytes import count_bytes
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.step_split import Dimensions, Layout, Strategies
from ..layouts.uses import Use, touched
from ..plans.cost import Cost, CostUnit
from ..solvers.elimination import CostTable
from ..solvers.semiring import TableArithmetic
from .restrictions import UNRESTRICTED, Restrictions


class Link(NamedTuple):
    """A class of operations that touches a class of tensors."""

    operator: int
    """The number of the class of operations."""

    tensor: int
    """The number of the class of tensors."""

    use: Use
    """How the operations use the tensors."""

    weight: int
    """The bytes of one element, times the number of equal links."""


class Objective(Protocol):
    """The quantity that a search minimises: its unit, its tables, and the score and bound of whole plans."""

    @property
    def unit(self) -> CostUnit:
        """Return the unit of the integers in the tables."""

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the sizes of the steps over which a search splits its workers."""

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return the cost of every pair of choices; `weight` is the bytes of one element."""

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

    objective: Objective
    """The quantity that the search minimises."""

    restrictions: Restrictions = UNRESTRICTED
    """The choices that constraints leave."""

    replicate: bool = False
    """Whether a step may replicate a tensor that it could split: the space that is searched and bounded."""

    prices: Mapping[int, Fraction] = field(default_factory=dict)
    """For classes of tensors, the cost of each element that a worker holds, beyond the objective."""

    fed: frozenset[int] = frozenset()
    """The classes of tensors that have no choice, because they are fed by batch, see `sequences.by_batch`."""

    def cost(self, value: int) -> Cost:
        """Return a sum of tables with its unit."""
        return Cost(value, self.objective.unit)

    def __repr__(self) -> str:
        return (
            f"<problem of {self.graph.name!r}: {len(self.operators)} classes of operations, "
            f"{len(self.shapes)} of tensors>"
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Return all pairs of an operation and a tensor between which bytes may move, equal ones merged."""
        weights: Counter[tuple[int, int, Use]] = Counter()
        itemsizes = [tensor.itemsize for tensor in self.graph.tensors]
        for operation in self.graph.operations:
            number = self.operation_class[operation.index]
            for tensor, use in touched(operation):
                weights[number, self.tensor_class[tensor], use] += itemsizes[tensor]
        return tuple(Link(*key, weight) for key, weight in weights.items())


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

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        """Return the layout of every tensor of the graph."""
        problem = self.problem
        return {
            tensor.name: Layout(tensor.shape, self.dimensions[number], self.factors)
            for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True)
        }

    @cached_property
    def operations(self) -> dict[str, Strategies]:
        """Return the strategies of every operation of the graph."""
        problem = self.problem
        return {
            operation.name: self.strategies[number]
            for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True)
        }

    @cached_property
    def moved_bytes(self) -> list[int]:
        """Count the bytes that move after no step, one, and so on up to all, from the graph alone."""
        return count_bytes(self.problem.graph, self.layouts, self.operations, self.factors)
