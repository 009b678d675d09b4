"""What a plan says of steps whose choices are not proven to be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cost import Cost

ENTRIES_COUNTED = 1 << 62
"""Larger tables are not told apart."""


@dataclass(frozen=True, slots=True)
class UnprovenStep:
    """A step of a plan whose choices are not proven to be the best given those before."""

    step: int | None
    """The step's number, the first being 0. None stands for all steps as one: a method searched them at
    once, and that was too wide."""

    table_entries: int
    """Elimination would have needed a table of so many entries; `ENTRIES_COUNTED` if of more."""

    lower_bound_bytes: int | None
    """No choices of the step move less than this beyond what the steps before it move; for all steps as one,
    no plan of the method moves less. None if that is not known: the search minimised something other than
    bytes, or changed its steps afterwards."""


def too_wide(step: int | None, table_entries: int, lower_bound: Cost | None) -> UnprovenStep:
    """Record a step whose elimination would have needed a table of so many entries.

    Of `lower_bound` only a number of bytes is kept.
    """
    proven = None if lower_bound is None else lower_bound.bytes
    return UnprovenStep(step, min(table_entries, ENTRIES_COUNTED), proven)


def unbounded(steps: Sequence[UnprovenStep]) -> tuple[UnprovenStep, ...]:
    """The same steps where later changes leave no bound of a single step standing."""
    return tuple(replace(step, lower_bound_bytes=None) for step in steps)
