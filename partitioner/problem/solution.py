"""Solutions, which search methods return: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layouts.choices import OperatorChoices, TensorChoices
from ..layouts.step_split import Dimensions, Strategies
from ..plans.cost import Cost
from ..plans.unproven import UnprovenStep


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices per class of a `Problem`, with the cost that the search claims for them."""

    factors: tuple[int, ...]
    """The sizes of the steps; their product is the number of workers."""

    strategies: tuple[Strategies, ...]
    """For each class of operations, a variable or None for every step."""

    dimensions: tuple[Dimensions, ...]
    """For each class of tensors, a dimension or None for every step."""

    cost: Cost
    """The cost of these choices by the problem's objective."""

    lower_bound: Cost
    """A lower bound on the cost of every plan that a recursive search with these factors can make.

    It does not depend on the method, and is 0 if nothing is proven.
    """

    unproven: tuple[UnprovenStep, ...] = ()
    """The steps of a stepwise search that were too wide."""


def assigned(
    factors: tuple[int, ...],
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    assignment: Sequence[int],
    *,
    cost: Cost,
    lower_bound: int = 0,
    unproven: tuple[UnprovenStep, ...] = (),
) -> Solution:
    """Return the choices that an assignment names: operators first, then tensors.

    `lower_bound` is in the cost's unit; zero is always a valid bound.
    """
    chosen = iter(assignment)
    return Solution(
        factors,
        tuple(choices.sequences[next(chosen)] for choices in operators),
        tuple(choices.sequences[next(chosen)] for choices in tensors),
        cost,
        Cost(lower_bound, cost.unit),
        unproven,
    )


def chosen(
    solution: Solution, operators: Sequence[OperatorChoices], tensors: Sequence[TensorChoices]
) -> tuple[int, ...]:
    """Return the assignment that stands for a solution's choices: operators first, then tensors."""
    return (
        *(own.sequences.index(names) for own, names in zip(operators, solution.strategies, strict=True)),
        *(own.sequences.index(names) for own, names in zip(tensors, solution.dimensions, strict=True)),
    )
