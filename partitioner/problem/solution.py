"""What a search method returns: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layouts.choices import OperatorChoices, TensorChoices
from ..layouts.step_split import Dimensions, Strategies
from ..plans.unproven import UnprovenStep


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices per class of a `Problem`, with the bytes that the search claims for them.

    `lower_bound_bytes` holds for every plan that a recursive search of this problem with these factors can
    make, and so does not depend on the method. Where the problem has an objective of its own, `cost_bytes` is
    in the units of that, and `lower_bound_bytes` of no use. `unproven` are the steps of a stepwise search
    that were too wide.
    """

    factors: tuple[int, ...]
    strategies: tuple[Strategies, ...]
    dimensions: tuple[Dimensions, ...]
    cost_bytes: int
    lower_bound_bytes: int
    unproven: tuple[UnprovenStep, ...] = ()


def assigned(
    factors: tuple[int, ...],
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    assignment: Sequence[int],
    *,
    cost_bytes: int,
    lower_bound_bytes: int = 0,
    unproven: tuple[UnprovenStep, ...] = (),
) -> Solution:
    """The choices that an assignment names: operators first, then tensors. Zero bounds every plan."""
    chosen = iter(assignment)
    return Solution(
        factors,
        tuple(choices.sequences[next(chosen)] for choices in operators),
        tuple(choices.sequences[next(chosen)] for choices in tensors),
        cost_bytes,
        lower_bound_bytes,
        unproven,
    )
