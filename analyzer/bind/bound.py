"""A description bound to concrete shapes: extents, output shapes, strategies and regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import tdl
from ...errors import ShapeError
from ...support.integers import Integers
from ...support.notebook_display import NotebookDisplay
from ...tdl.ast import AnyReducer
from ..indices import region
from ..indices.evaluate import MAX_MAGNITUDE
from ..indices.region import Boxes, Shape
from ..input_regions.reader import Reader
from ..input_regions.refinements import refinements
from ..strategies.discover import Kind, Refusal, SplitVariable
from ..strategies.linear import is_linear
from ..strategies.strategy import Strategy
from . import concrete_extents
from .tightness import BoundSizes, Looseness, looseness

if TYPE_CHECKING:
    from .analysis import Analysis

Array = npt.NDArray[Any]

ITEM_BYTES = 4
"""Bytes of an element in the type that training computes in, float32."""


class Bound(NotebookDisplay):
    """The analysis of one description for given shapes. Compared by identity.

    `variables` are the output variables, then the reduction variables, in text order. Every box of the
    iteration space has one interval for each. `extents` has the same order.
    """

    def __init__(self, analysis: Analysis, shapes: Mapping[str, Shape]) -> None:
        """Bind to `shapes`, which `Analysis.bind` has checked. Raises ShapeError if they do not fit."""
        self.analysis = analysis
        self.description = analysis.description
        self.variables = analysis.variables
        self.elementwise = analysis.elementwise
        self.in_place = analysis.in_place
        self.reads = analysis.reads
        self.shapes = dict(shapes)
        self.extents = concrete_extents.extents(analysis, self.shapes)
        self.output_shapes = concrete_extents.output_shapes(analysis, self.extents)
        concrete_extents.check_divisors(analysis, self.shapes, self.extents)
        concrete_extents.check_inside(analysis, self.shapes, self.extents)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={shape}" for name, shape in self.shapes.items())
        return f"<{self.description.name} bound to {shapes}>"

    @property
    def stage_bounds(self) -> tuple[Bound, ...]:
        """The bound stages in execution order: this one alone."""
        return (self,)

    @cached_property
    def full_box(self) -> Boxes:
        """The whole iteration space, `[variable, 2]`."""
        return region.whole(tuple(self.extents.values()))

    @cached_property
    def read_places(self) -> tuple[tuple[int, str], ...]:
        """The tensors whose elements are read, with their places among the description's tensors."""
        names = self.description.tensor_names
        return tuple((place, name) for place, name in enumerate(names) if name in self.reads)

    @cached_property
    def splits(self) -> Mapping[str, SplitVariable]:
        """Variables that can be split for these shapes, in order."""
        return {
            split.variable: split
            for split in self.analysis.splits
            if isinstance(split, SplitVariable) and self.extents[split.variable] > 1
        }

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Every way to split the operator, in the order of `variables`."""
        return tuple(Strategy.of(split, self) for split in self.splits.values())

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """Variables without a strategy, each with its reason."""
        return tuple(
            split
            if isinstance(split, Refusal)
            else Refusal(split.variable, split.span, f"its extent is {self.extents[split.variable]}")
            for split in self.analysis.splits
            if split.variable not in self.splits
        )

    def kind(self, variable: str) -> Kind | None:
        """Return how the operator is split along a variable; None if it is not."""
        split = self.splits.get(variable)
        return None if split is None else split.kind

    def reducer(self, variable: str) -> AnyReducer | None:
        """Return what combines partial outputs of a `reduce` strategy."""
        split = self.splits.get(variable)
        return None if split is None else split.reducer

    def linear_in(self, tensors: Iterable[str]) -> bool:
        """Tell whether all outputs are linear in these tensors together, all others held."""
        return is_linear(self.description, frozenset(tensors))

    def split(self, variables: Sequence[str | None], factors: Sequence[int]) -> Boxes:
        """Return boxes `[worker, variable, 2]` of the iteration space after splitting it step by step."""
        axes = [None if variable is None else self.variables.index(variable) for variable in variables]
        return region.split(self.full_box, axes, factors)

    def input_regions(self, boxes: Boxes) -> dict[str, Boxes]:
        """Return what boxes `[n, variable, 2]` read of each tensor: `[n, dimension, 2]`.

        Clipped to the tensor; all zeros if nothing is read.
        """
        return self._reader(boxes)

    def output_regions(self, boxes: Boxes) -> tuple[Boxes, ...]:
        """Return what boxes `[n, variable, 2]` produce of each output: `[n, dimension, 2]`."""
        return tuple(boxes[:, positions] for positions in self.analysis.output_positions)

    @cached_property
    def flops(self) -> int | None:
        """Floating-point operations of the whole iteration space; None if some are opaque."""
        operations = self.analysis.operations
        return None if operations is None else operations.at(tuple(self.extents.values()))

    @property
    def bytes_touched(self) -> int:
        """Bytes of all input regions and outputs, in float32."""
        return ITEM_BYTES * int(self.elements_of(self.full_box[None])[0])

    def flops_of(self, boxes: Boxes) -> Integers | None:
        """Floating-point operations of boxes `[n, variable, 2]`, as `flops`: `[n]`.

        Raises ShapeError if the count of the whole iteration space exceeds 2**62.
        """
        operations = self.analysis.operations
        if operations is None or self.flops is None:
            return None
        if self.flops >= MAX_MAGNITUDE:
            raise ShapeError(
                f"{self.description.name}: {self.flops} operations exceed 2**62; use smaller shapes"
            )
        return operations.in_bulk(np.maximum(boxes[..., 1] - boxes[..., 0], 0))

    def elements_of(self, boxes: Boxes) -> Integers:
        """Return elements of the input regions and of the outputs of boxes `[n, variable, 2]`: `[n]`."""
        read = (part for name, part in self.input_regions(boxes).items() if name in self.reads)
        return sum(map(region.volume, (*read, *self.output_regions(boxes))), np.zeros(len(boxes), np.int64))

    @cached_property
    def looseness(self) -> tuple[Looseness, ...]:
        """Tensors whose regions hold elements that are not read, with the reason."""
        analysis = self.analysis
        symbols = dict(zip(analysis.symbols, analysis.extents_of(self.shapes), strict=True))
        return looseness(analysis.accesses, BoundSizes(self.shapes, self.extents, symbols))

    @property
    def tight(self) -> bool:
        """Whether the regions of the whole iteration space hold only elements that are read."""
        return not self.looseness

    def interpret(
        self, tensors: Mapping[str, Array], opaque: Mapping[str, Callable[..., Any]] | None = None
    ) -> tuple[Array, ...]:
        """Return the outputs from the description alone, slow and obvious."""
        return tdl.interpret(self.description, self.extents, tensors, self.shapes, opaque=opaque)

    @cached_property
    def _reader(self) -> Reader:
        analysis = self.analysis
        extents = analysis.extents_of(self.shapes)
        limits = [extent for access in analysis.accesses for extent in self.shapes[access.tensor]]
        return Reader(
            analysis.regions.bind(2 * len(analysis.variables), extents),
            np.array(limits, np.int64),
            tuple(refinements(analysis.suspects, analysis.variables, analysis.symbols, extents)),
            analysis.readings,
            {name: len(shape) for name, shape in self.shapes.items()},
        )
