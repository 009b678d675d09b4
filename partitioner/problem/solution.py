"""Solutions, which search methods return: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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

    copies: Mapping[int, Dimensions] = field(default_factory=dict)
    """The layout of the copy of each class of tensors that has one, see `Problem.copied`."""


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
    of_operators, of_tensors = assignment[: len(operators)], assignment[len(operators) :]
    copies = {
        number: choices.copies[value]
        for number, (choices, value) in enumerate(zip(tensors, of_tensors, strict=True))
        if choices.copies
    }
    return Solution(
        factors,
        tuple([choices.sequences[value] for choices, value in zip(operators, of_operators, strict=True)]),
        tuple([choices.sequences[value] for choices, value in zip(tensors, of_tensors, strict=True)]),
        cost,
        Cost(lower_bound, cost.unit),
        unproven,
        {number: copy for number, copy in copies.items() if copy is not None},
    )


def chosen(
    solution: Solution, operators: Sequence[OperatorChoices], tensors: Sequence[TensorChoices]
) -> tuple[int, ...]:
    """Return the assignment that stands for a solution's choices: operators first, then tensors."""
    return (
        *(own.sequences.index(names) for own, names in zip(operators, solution.strategies, strict=True)),
        *(
            own.number(names, solution.copies.get(number))
            for number, (own, names) in enumerate(zip(tensors, solution.dimensions, strict=True))
        ),
    )
