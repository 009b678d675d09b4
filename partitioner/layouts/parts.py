"""The parts of a plan one by one, whatever the forms that it is written in.

Two forms with the same parts are the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region, to_region
from .forms import Form
from .step_split import Layout, split_operation


@dataclass(frozen=True, slots=True)
class Part:
    """A box on a worker: a task of an operation, or a holding of a tensor."""

    worker: int
    """The worker's number."""

    box: Region
    """Intervals of the index variables of an operation, or of the dimensions of a tensor."""

    term: int | None = None
    """The number of the partial result that it is; None if it is not a partial result."""


def holdings(layout: Layout) -> tuple[Part, ...]:
    """Return what workers hold of a tensor."""
    return tuple(map(Part, layout.workers.tolist(), map(to_region, layout.regions)))


def tasks(bound: Bound, form: Form, factors: tuple[int, ...]) -> tuple[Part, ...]:
    """Return what workers compute of an operation. Raises PlanError if a variable does not exist."""
    found = split_operation(bound, form, factors)
    terms = found.term.tolist() if found.terms > 1 else [None] * len(found.workers)
    return tuple(map(Part, found.workers.tolist(), map(to_region, found.boxes), terms))


def without_part(parts: Iterable[Part], workers: int) -> tuple[int, ...]:
    """Return the workers that have no part."""
    return tuple(sorted(set(range(workers)) - {part.worker for part in parts}))


def in_one_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Sort parts by box and worker and number their terms anew, so that equal choices have equal parts."""
    numbers: dict[int | None, int | None] = {None: None}
    ordered = sorted(parts, key=lambda part: (part.box, part.worker, -1 if part.term is None else part.term))
    return tuple(Part(part.worker, part.box, numbers.setdefault(part.term, len(numbers))) for part in ordered)
