"""What a plan says of steps whose choices are not proven to be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cost import Cost

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


def too_wide(step: int | None, table_entries: int, lower_bound: Cost | None) -> UnprovenStep:
    """Record a step whose elimination would have needed a table of so many entries.

    Of `lower_bound` only a number of bytes is kept.
    """
    proven = None if lower_bound is None else lower_bound.bytes
    return UnprovenStep(step, min(table_entries, ENTRIES_COUNTED), proven)


def unbounded(steps: Sequence[UnprovenStep]) -> tuple[UnprovenStep, ...]:
    """The same steps where later changes leave no bound of a single step standing."""
    return tuple(replace(step, lower_bound_bytes=None) for step in steps)
