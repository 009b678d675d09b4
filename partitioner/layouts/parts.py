"""The parts of a plan one by one, whatever the forms that it is written in.

Two forms with the same parts are the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region, to_region
from ...programs.program import region_text
from .forms import Form
from .step_split import Layout, split_operation


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an operation."""

    worker: int
    """The worker that computes it."""

    box: Region
    """One interval for each variable of the operation."""

    term: int | None = None
    """The number of the partial result that it makes; None if there is one alone."""

    read: int | None = None
    """The number of the term of its inputs that it reads; None if they are reduced."""

    def __str__(self) -> str:
        reads = "" if self.read is None else f", reads term {self.read}"
        return _shown(self.worker, self.box, self.term) + reads


@dataclass(frozen=True, slots=True)
class Holding:
    """A part of a tensor."""

    worker: int
    """The worker that holds it."""

    region: Region
    """One interval for each dimension of the tensor."""

    term: int | None = None
    """The number of the term of the tensor; None if the tensor is reduced."""

    def __str__(self) -> str:
        return _shown(self.worker, self.region, self.term)


def holdings(layout: Layout) -> tuple[Holding, ...]:
    """Return what workers hold of a tensor."""
    found = layout.expanded
    terms = numbers(found.term.tolist(), found.terms)
    return tuple(map(Holding, found.workers.tolist(), map(to_region, found.boxes), terms))


def tasks(bound: Bound, form: Form, factors: tuple[int, ...]) -> tuple[Task, ...]:
    """Return what workers compute of an operation. Raises PlanError if a variable does not exist."""
    found = split_operation(bound, form, factors)
    terms, reads = numbers(found.term.tolist(), found.terms), numbers(found.read.tolist(), found.reads)
    return tuple(map(Task, found.workers.tolist(), map(to_region, found.boxes), terms, reads))


def numbers(term: Iterable[int], terms: int) -> Iterable[int | None]:
    """Return the numbers of terms; None for each part if there is one term alone."""
    return term if terms > 1 else repeat(None)


def _shown(worker: int, box: Region, term: int | None) -> str:
    return f"worker {worker} {region_text(box)}" + ("" if term is None else f" term {term}")


def without_part(parts: Iterable[Task] | Iterable[Holding], workers: int) -> tuple[int, ...]:
    """Return the workers that have no part."""
    return tuple(sorted(set(range(workers)) - {part.worker for part in parts}))
