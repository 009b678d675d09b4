"""What a search method returns: choices by class, not yet spread over the graph's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .tables import Dimensions, OperatorChoices, Strategies, TensorChoices

ENTRIES_COUNTED = 1 << 62
"""Larger tables are not told apart."""


@dataclass(frozen=True, slots=True)
class UnprovenStep:
    """A step of a plan, the first being 0, whose choices are not proven to be the best given those before.

    The `step` None stands for all steps as one: what a method searches at once, beyond single steps, was too
    wide. `lower_bound_bytes` then bounds every plan of the method, not only what a step adds.

    Its problem was too wide to be solved exactly: elimination would have needed a table of `table_entries`
    (`ENTRIES_COUNTED` where that is more).
    No choices of the step move less than `lower_bound_bytes` more than the steps before it do; None where
    that is not known: the search minimised something other than bytes, or changed its steps afterwards.
    """

    step: int | None
    table_entries: int
    lower_bound_bytes: int | None


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices per class of a `Network`, with the bytes that the search claims for them.

    `lower_bound_bytes` holds for every plan that a recursive search of this network with these factors can
    make, and so does not depend on the method. Where the network has an objective of its own, `cost_bytes` is
    in the units of that, and `lower_bound_bytes` of no use. `unproven` are the steps of a stepwise search
    that were too wide.
    """

    factors: tuple[int, ...]
    strategies: tuple[Strategies, ...]
    dimensions: tuple[Dimensions, ...]
    cost_bytes: int
    lower_bound_bytes: int
    unproven: tuple[UnprovenStep, ...] = ()


def too_wide(step: int | None, table_entries: int, lower_bound_bytes: int | None) -> UnprovenStep:
    """What a plan says of a step whose elimination would have needed a table of so many entries."""
    return UnprovenStep(step, min(table_entries, ENTRIES_COUNTED), lower_bound_bytes)


def unbounded(steps: Sequence[UnprovenStep]) -> tuple[UnprovenStep, ...]:
    """The same steps where later changes leave no bound of a single step standing."""
    return tuple(replace(step, lower_bound_bytes=None) for step in steps)


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
