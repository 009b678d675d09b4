"""A strategy: one way to run one operator on several workers, along one index variable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ...errors import ShapeError
from ...support.notebook_display import NotebookDisplay
from ...tdl.ast import AnyReducer, Description
from ..indices.region import Boxes, Region, to_region
from .discover import Kind, SplitVariable


class Splittable(Protocol):
    """What a strategy needs of the bound description it belongs to."""

    description: Description
    extents: dict[str, int]

    def split(self, variables: tuple[str], factors: tuple[int]) -> Boxes: ...
    def input_regions(self, boxes: Boxes) -> dict[str, Boxes]: ...
    def output_regions(self, boxes: Boxes) -> tuple[Boxes, ...]: ...


@dataclass(frozen=True, slots=True)
class Strategy(NotebookDisplay):
    """Split along `variable`: outputs are concatenated, or reduced by `reducer`.

    `needs_offset` says that the variable is also used as a value, so that a kernel must know where its
    box starts.
    """

    variable: str
    kind: Kind
    reducer: AnyReducer | None
    needs_offset: bool
    bound: Splittable = field(repr=False, compare=False)

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
        if not 0 <= worker < workers:
            raise ShapeError(f"{name}: worker {worker} of {workers}: numbers go from 0 to {workers - 1}")
        if extent < workers:
            raise ShapeError(
                f"{name}: '{self.variable}' has extent {extent}, too small for {workers} workers; "
                f"split another variable or use at most {extent} workers"
            )
        return self.bound.split((self.variable,), (workers,))[worker : worker + 1]
