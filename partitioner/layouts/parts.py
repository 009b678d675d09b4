"""The parts of a plan one by one, whatever the forms that it is written in.

Two forms with the same parts are the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region, to_region
from .forms import Form, Workers
from .step_split import Layout, split_operation


@dataclass(frozen=True, slots=True)
class Part:
    """A box on a worker: a task of an operation, or a holding of a tensor."""

    worker: int
    """The worker's number."""

    box: Region
    """Intervals of the index variables of an operation, or of the dimensions of a tensor."""

    term: int | None = None
    """The number of the partial result that it is or makes; None if there is one alone."""

    read: int | None = None
    """The number of the term of its inputs that a task reads; None if they are reduced."""


def holdings(layout: Layout) -> tuple[Part, ...]:
    """Return what workers hold of a tensor."""
    found = layout.expanded
    terms = _numbers(found.term, found.terms)
    return tuple(map(Part, found.workers.tolist(), map(to_region, found.boxes), terms))


def tasks(bound: Bound, form: Form, factors: tuple[int, ...]) -> tuple[Part, ...]:
    """Return what workers compute of an operation. Raises PlanError if a variable does not exist."""
    found = split_operation(bound, form, factors)
    terms, reads = _numbers(found.term, found.terms), _numbers(found.read, found.reads)
    return tuple(map(Part, found.workers.tolist(), map(to_region, found.boxes), terms, reads))


def _numbers(term: Workers, terms: int) -> Iterable[int | None]:
    return term.tolist() if terms > 1 else repeat(None)


def without_part(parts: Iterable[Part], workers: int) -> tuple[int, ...]:
    """Return the workers that have no part."""
    return tuple(sorted(set(range(workers)) - {part.worker for part in parts}))
