"""The parts of a plan, one by one: tasks of operations, and what workers hold of tensors."""

from __future__ import annotations

from dataclasses import dataclass

from ..analyzer.indices.region import Region
from .program import region_text


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


def _shown(worker: int, box: Region, term: int | None) -> str:
    return f"worker {worker} {region_text(box)}" + ("" if term is None else f" term {term}")
