"""The copies of a plan with their lifetimes: from the first reader to the last, in the plan's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layouts.forms import Form
from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A copy of a tensor, and the operations for which it is kept."""

    tensor: str
    """The tensor's name."""

    number: int
    """The number of the version; 0 is the tensor's home."""

    form: Form
    """Who holds which parts."""

    source: int
    """The number of the version that it is made from."""

    readers: tuple[str, ...]
    """Its readers as they run: it is made for the first one, and kept until the last one has run."""


def kept_copies(plan: Plan, order: Sequence[str]) -> tuple[KeptCopy, ...]:
    """Return all copies of a plan, whose operations run in `order`. Readers without a place come last."""
    place = {name: number for number, name in enumerate(order)}

    def as_run(readers: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(readers, key=lambda reader: place.get(reader, len(place))))

    return tuple(
        KeptCopy(name, number, copy.form, copy.source, as_run(copy.readers))
        for name, copies in plan.copies.items()
        for number, copy in enumerate(copies, 1)
    )
