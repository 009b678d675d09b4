"""Steps whose choices are not proven to be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cost import Cost

ENTRIES_COUNTED = 1 << 62
"""Table sizes are capped at this value when they are reported."""


@dataclass(frozen=True, slots=True)
class UnprovenStep:
    """A step of a plan whose choices are not proven to be the best, given the earlier steps."""

    step: int | None
    """The step's number, from 0. None stands for all steps together, if a method searched them at once."""

    table_entries: int
    """The entries of the table that elimination would have needed, at most `ENTRIES_COUNTED`."""

    lower_bound_bytes: int | None
    """No choices of the step add fewer bytes to those of the earlier steps.

    For all steps together, no plan of the method moves fewer bytes. None if no bound is known: the search
    minimised something other than bytes, or changed its steps afterwards.
    """


def too_wide(step: int | None, table_entries: int, lower_bound: Cost | None) -> UnprovenStep:
    """Record a step whose elimination would have needed a table of `table_entries` entries.

    `lower_bound` is kept only if it counts bytes.
    """
    proven = None if lower_bound is None else lower_bound.bytes
    return UnprovenStep(step, min(table_entries, ENTRIES_COUNTED), proven)


def unbounded(steps: Sequence[UnprovenStep]) -> tuple[UnprovenStep, ...]:
    """Return the same steps without bounds, because later changes made them invalid."""
    return tuple(replace(step, lower_bound_bytes=None) for step in steps)
