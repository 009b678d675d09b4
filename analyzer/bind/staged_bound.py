"""A description with stages bound to shapes, seen as one operator.

Regions are composed backward. The box of the outputs determines what is read of the last intermediate
tensors. That determines the boxes of their stages, and so on to the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...support.integers import Integers
from ...support.notebook_display import NotebookDisplay
from ...tdl.ast import AnyReducer, Description
from ..indices import region
from ..indices.region import Boxes, Shape
from ..specialize.split_stages import split_stages
from ..strategies.discover import Kind, Refusal
from ..strategies.strategy import Strategy
from .analysis import analyze
from .bound import Array, Bound
from .shapes import checked_shapes
from .tightness import Looseness


def bind(description: Description, shapes: Mapping[str, Sequence[int]]) -> Bound | StagedBound:
    """Return a specialised description, with or without stages, for concrete shapes.

    Raises DescriptionError, ShapeError.
    """
    return StagedBound(description, shapes) if description.stages else analyze(description).bind(shapes)


class StagedBound(NotebookDisplay):
    """The same names as `Bound`, for a description with stages.

    `stages` are the bound stages by what they produce, and `last` produces the outputs. Boxes are boxes of
    the last stage's iteration space, and `variables` are its variables. `extents` begins with theirs,
    followed by those variables of earlier stages whose names differ. Strategies are those of the last stage.
    """

    def __init__(self, description: Description, shapes: Mapping[str, Sequence[int]]) -> None:
        """Bind all stages. Raises DescriptionError, ShapeError."""
        self.description = description
        self.shapes = checked_shapes(description, {}, shapes)
        known = dict(self.shapes)
        *parts, last = split_stages(description)
        self.stages: dict[str, Bound] = {}
        for stage, part in zip(description.stages, parts, strict=True):
            bound = self.stages[stage.name] = _bound(part, known)
            (known[stage.name],) = bound.output_shapes
        self.last = _bound(last, known)
        self.variables = self.last.variables
        self.output_shapes = self.last.output_shapes
        self.extents = dict(self.last.extents)
        for bound in self.stages.values():
            self.extents = self.extents | {n: e for n, e in bound.extents.items() if n not in self.extents}
        self.elementwise = all(bound.elementwise for bound in self.stage_bounds)
        read = {tensor for bound in self.stage_bounds for tensor in bound.reads}
        self.reads = frozenset(read & self.shapes.keys())

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={shape}" for name, shape in self.shapes.items())
        return f"<{self.description.name} bound to {shapes}, {len(self.stages) + 1} stages>"

    @property
    def stage_bounds(self) -> tuple[Bound, ...]:
        """The bound stages in execution order."""
        return (*self.stages.values(), self.last)

    @property
    def full_box(self) -> Boxes:
        """The whole iteration space of the last stage, `[variable, 2]`."""
        return self.last.full_box

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Every way to split the operator, in the order of `variables`."""
        return tuple(Strategy.of(split, self) for split in self.last.splits.values())

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Variables of the last stage without a strategy, each with its reason."""
        return self.last.refusals

    def kind(self, variable: str) -> Kind | None:
        """Return how the operator is split along a variable; None if it is not."""
        return self.last.kind(variable)

    def reducer(self, variable: str) -> AnyReducer | None:
        """Return what combines partial outputs of a `reduce` strategy."""
        return self.last.reducer(variable)

    def split(self, variables: Sequence[str | None], factors: Sequence[int]) -> Boxes:
        """Return boxes `[worker, variable, 2]` of the iteration space after splitting it step by step."""
        return self.last.split(variables, factors)

    def input_regions(self, boxes: Boxes) -> dict[str, Boxes]:
        """Return what boxes `[n, variable, 2]` read of each parameter, through all stages: `[n, dimension,
        2]`.

        Clipped to the tensor; all zeros if nothing is read.
        """
        needed = self._needed(boxes)
        return {
            name: needed[name] if name in needed else np.zeros((len(boxes), len(shape), 2), np.int64)
            for name, shape in self.shapes.items()
        }

    def output_regions(self, boxes: Boxes) -> tuple[Boxes, ...]:
        """Return what boxes `[n, variable, 2]` produce of each output: `[n, dimension, 2]`."""
        return self.last.output_regions(boxes)

    @property
    def flops(self) -> int | None:
        """Floating-point operations of all stages; None if an opaque function hides some."""
        counts = [bound.flops for bound in self.stage_bounds]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def bytes_touched(self) -> int:
        """Bytes of what all stages read and produce, in float32."""
        return sum(bound.bytes_touched for bound in self.stage_bounds)

    def flops_of(self, boxes: Boxes) -> Integers | None:
        """Floating-point operations of boxes `[n, variable, 2]` and all they need of other stages: `[n]`."""
        total = np.zeros(len(boxes), np.int64)
        for bound, inner in self._stage_boxes(boxes):
            count = bound.flops_of(inner)
            if count is None:
                return None
            total += count
        return total

    def elements_of(self, boxes: Boxes) -> Integers:
        """Return elements that all stages read and produce for boxes `[n, variable, 2]`: `[n]`."""
        parts = [bound.elements_of(inner) for bound, inner in self._stage_boxes(boxes)]
        return sum(parts, np.zeros(len(boxes), np.int64))

    @cached_property
    def looseness(self) -> tuple[Looseness, ...]:
        """The tensors whose regions hold elements that a stage does not read, with the reason."""
        return tuple(loose for bound in self.stage_bounds for loose in bound.looseness)

    @cached_property
    def tight(self) -> bool:
        """Whether the regions of the whole iteration space are known to hold only elements that are read."""
        needed = self._needed(self.full_box[None])
        for name, bound in self.stages.items():
            if name in needed and not np.array_equal(needed[name][0], region.whole(bound.output_shapes[0])):
                return False
        for bound in self.stage_bounds:
            for tensor, boxes in bound.input_regions(bound.full_box[None]).items():
                if tensor in bound.reads and not np.array_equal(boxes, needed.get(tensor, boxes)):
                    return False
        return not self.looseness

    def interpret(
        self, tensors: Mapping[str, Array], opaque: Mapping[str, Callable[..., Any]] | None = None
    ) -> tuple[Array, ...]:
        """Return the outputs from the description alone, slow and obvious."""
        known = dict(tensors)
        for name, bound in self.stages.items():
            (known[name],) = bound.interpret({n: known[n] for n in bound.shapes if n in known}, opaque)
        return self.last.interpret({n: known[n] for n in self.last.shapes if n in known}, opaque)

    def _needed(self, boxes: Boxes) -> dict[str, Boxes]:
        """Return what boxes of the last stage need of every tensor, intermediate ones included."""
        needed = self.last.input_regions(boxes)
        for name, bound in reversed(self.stages.items()):
            if name not in needed:
                continue
            inner = _producing(bound, needed[name])
            for tensor, read in bound.input_regions(inner).items():
                needed[tensor] = region.hull(needed[tensor], read) if tensor in needed else read
        return needed

    def _stage_boxes(self, boxes: Boxes) -> Iterator[tuple[Bound, Boxes]]:
        """Yield every stage that boxes of the last one need, with its boxes."""
        needed = self._needed(boxes)
        for name, bound in self.stages.items():
            if name in needed:
                yield bound, _producing(bound, needed[name])
        yield self.last, boxes


def _bound(part: Description, known: Mapping[str, Shape]) -> Bound:
    """Return a stage for the shapes of the tensors that it takes."""
    return analyze(part).bind({tensor: known[tensor] for tensor in part.tensor_names})


def _producing(bound: Bound, regions: Boxes) -> Boxes:
    """Return boxes of a stage's iteration space that produce regions of its output."""
    boxes = np.repeat(bound.full_box[None], len(regions), axis=0)
    boxes[:, : regions.shape[1]] = regions
    return boxes
