"""A strategy: one way to run one operator on several workers, along one index variable."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Protocol

from ...errors import ShapeError
from ...support.checked_argument import require
from ...support.notebook_display import NotebookDisplay
from ...tdl.ast import AnyReducer, Description
from ..indices.region import Boxes, Region, to_region
from .discover import Kind, SplitVariable


class Splittable(Protocol):
    """The part of a bound description that its strategies need."""

    description: Description
    extents: dict[str, int]

    def split(self, variables: tuple[str], factors: tuple[int]) -> Boxes: ...
    def input_regions(self, boxes: Boxes) -> dict[str, Boxes]: ...
    def output_regions(self, boxes: Boxes) -> tuple[Boxes, ...]: ...


@dataclass(frozen=True, slots=True)
class Strategy(NotebookDisplay):
    """A way to run one operator on several workers, split along one index variable."""

    variable: str
    """The index variable whose values are shared out."""

    kind: Kind
    """`concat` if outputs are concatenated, `reduce` if partial results are combined."""

    reducer: AnyReducer | None
    """Combines the partial results; None for `concat`."""

    needs_offset: bool
    """Whether the variable is also used as a value, so that a kernel must know where its box starts."""

    bound: Splittable = field(repr=False, compare=False)
    """The operator with its shapes, which computes the regions."""

    @classmethod
    def of(cls, split: SplitVariable, bound: Splittable) -> Strategy:
        """Return what a split is for a description that is bound."""
        return cls(split.variable, split.kind, split.reducer, split.needs_offset, bound)

    def input_regions(self, *, worker: int, workers: int) -> dict[str, Region]:
        """Return what one worker reads of each tensor. Raises ShapeError for more workers than the extent."""
        regions = self.bound.input_regions(self._box(worker, workers))
        return {name: to_region(boxes[0]) for name, boxes in regions.items()}

    def output_regions(self, *, worker: int, workers: int) -> tuple[Region, ...]:
        """Return what one worker produces of each output.

        Under `reduce`, a partial value of the whole output.

        Raises ShapeError for more workers than the extent.
        """
        return tuple(to_region(boxes[0]) for boxes in self.bound.output_regions(self._box(worker, workers)))

    def _box(self, worker: int, workers: int) -> Boxes:
        extent = self.bound.extents[self.variable]
        name = self.bound.description.name
        require(isinstance(worker, Integral), worker, "worker", "an integer from 0 on", ShapeError)
        require(isinstance(workers, Integral), workers, "workers", "an integer from 1 on", ShapeError)
        if not 0 <= worker < workers:
            raise ShapeError(f"{name}: worker {worker} of {workers}: numbers go from 0 to {workers - 1}")
        if extent < workers:
            raise ShapeError(
                f"{name}: '{self.variable}' has extent {extent}, too small for {workers} workers; "
                f"split another variable or use at most {extent} workers"
            )
        return self.bound.split((self.variable,), (workers,))[worker : worker + 1]
