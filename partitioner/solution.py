"""What a search method returns: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .tables import Dimensions, OperatorChoices, Strategies, TensorChoices


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices per class of a `Network`, with the bytes that the search claims for them.

    `lower_bound_bytes` holds for every plan that a recursive search of this network with these factors can
    make, and so does not depend on the method. Where the network has an objective of its own, `cost_bytes` is
    in the units of that, and `lower_bound_bytes` of no use.
    """

    factors: tuple[int, ...]
    strategies: tuple[Strategies, ...]
    dimensions: tuple[Dimensions, ...]
    cost_bytes: int
    lower_bound_bytes: int


def assigned(
    factors: tuple[int, ...],
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    assignment: Sequence[int],
    *,
    cost_bytes: int,
    lower_bound_bytes: int = 0,
) -> Solution:
    """The choices that an assignment names: operators first, then tensors. Zero bounds every plan."""
    chosen = iter(assignment)
    return Solution(
        factors,
        tuple(choices.sequences[next(chosen)] for choices in operators),
        tuple(choices.sequences[next(chosen)] for choices in tensors),
        cost_bytes,
        lower_bound_bytes,
    )
