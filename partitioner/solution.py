"""What a search method returns: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import Dimensions, Strategies


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices per class of a `Network`, with the bytes that the search claims for them.

    `step_cost_bytes` are what each step adds: bytes with all workers of the steps so far, less the same
    before it. `lower_bound_bytes` holds for every plan of this network and these factors.
    """

    factors: tuple[int, ...]
    strategies: tuple[Strategies, ...]
    dimensions: tuple[Dimensions, ...]
    step_cost_bytes: tuple[int, ...]
    lower_bound_bytes: int
