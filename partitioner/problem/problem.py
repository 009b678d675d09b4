"""What a search decides about a graph, its classes of operations and tensors with the links between them, and
what it minimises.

Every operation and every tensor is a decision, except that some must agree: a tensor that overwrites
another one takes over its layout, and operations that are tied (one cell's copies at different time
steps, Tofu section 5.1) share one strategy, and what they produce one layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph
from ..costs.plan_bytes import count_bytes
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.step_split import Dimensions, SplitLayout, Strategies
from ..layouts.uses import Use, touched
from ..plans.cost import Cost, CostUnit
from ..solvers.elimination import Factor
from ..solvers.semiring import Arithmetic
from .restrictions import UNRESTRICTED, Restrictions


class Link(NamedTuple):
    """An operation class touches a tensor class; `weight` is the bytes of one element times repetitions."""

    operator: int
    tensor: int
    use: Use
    weight: int


class Objective(Protocol):
    """What a search minimises: the unit, the tables, and the score and the bound of whole plans."""

    @property
    def unit(self) -> CostUnit:
        """What the integers in the tables count."""

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the sizes of the steps over which a search splits its workers."""

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return the cost of every pair of choices, `weight` being the bytes of one element."""

    def total(self, chosen: Chosen) -> int:
        """Score a whole plan: what the tables at its choices add up to, counted anew."""

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Return what no plan of the recursion costs less than; 0 if nothing is known."""


@dataclass(frozen=True, slots=True)
class FirstStep:
    """The first step's problem, from which an objective proves a bound for all steps."""

    operators: Sequence[OperatorChoices]
    """The choices of every class of operations."""

    tensors: Sequence[TensorChoices]
    """The choices of every class of tensors."""

    tables: Sequence[Factor]
    """The step's factor graph."""

    least: Callable[[], int]
    """Solves the step: the proven least sum of its tables."""

    arithmetic: Arithmetic
    """Remembers what sums of these tables have been worked out."""

    steps: int
    """How many steps there are in all."""


@dataclass(frozen=True)
class Problem:
    """The decisions of a search and what it minimises."""

    graph: Graph
    """The graph whose operations and tensors are decided."""

    operators: tuple[Bound, ...]
    """By class of operations the operator that its members apply."""

    shapes: tuple[Shape, ...]
    """By class of tensors the shape of its members."""

    operation_class: tuple[int, ...]
    """By operation of the graph the number of its class."""

    tensor_class: tuple[int, ...]
    """By tensor of the graph the number of its class."""

    objective: Objective
    """What the search minimises."""

    restrictions: Restrictions = UNRESTRICTED
    """What constraints leave of the choices."""

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
        """All pairs of an operation and a tensor between which bytes may move, equal ones merged."""
        weights: Counter[tuple[int, int, Use]] = Counter()
        itemsizes = [tensor.itemsize for tensor in self.graph.tensors]
        for operation in self.graph.operations:
            number = self.operation_class[operation.index]
            for tensor, use in touched(operation):
                weights[number, self.tensor_class[tensor], use] += itemsizes[tensor]
        return tuple(Link(*key, weight) for key, weight in weights.items())


@dataclass(frozen=True)
class Chosen:
    """Choices for all classes of a problem, spread over the names of its graph."""

    problem: Problem
    factors: tuple[int, ...]
    strategies: tuple[Strategies, ...]
    dimensions: tuple[Dimensions, ...]

    @cached_property
    def layouts(self) -> dict[str, SplitLayout]:
        """The layout of every tensor of the graph."""
        problem = self.problem
        return {
            tensor.name: SplitLayout(tensor.shape, self.dimensions[number], self.factors)
            for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True)
        }

    @cached_property
    def operations(self) -> dict[str, Strategies]:
        """The strategies of every operation of the graph."""
        problem = self.problem
        return {
            operation.name: self.strategies[number]
            for operation, number in zip(problem.graph.operations, problem.operation_class, strict=True)
        }

    @cached_property
    def moved_bytes(self) -> list[int]:
        """The bytes that move after no step, one, and so on up to all, counted from the graph alone."""
        return count_bytes(self.problem.graph, self.layouts, self.operations, self.factors)
