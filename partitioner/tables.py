"""Candidate choices and the communication tables between them.

A choice is a sequence with one entry per step: for an operation the index variable it is split along, for
a tensor the dimension, or None where the step replicates it. Choices of `i` entries describe the graph
split over the product of the first `i` factors; fetched data is included because an operation's regions
follow from its own nested boxes (Tofu, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.bound import Bound
from ..analyzer.region import Boxes, Shape, split, whole
from .cost import Counts, collected_elements, fetched_elements
from .network import Source
from .sequences import Near

Strategies = tuple[str | None, ...]
Dimensions = tuple[int | None, ...]
Choice = tuple[str | int | None, ...]
"""Strategies or dimensions, where it does not matter which."""

KeepVariables = Callable[[Bound, tuple[str, ...]], Strategies]
"""From an operator and the variables that a step can split it along to those that a method considers."""

KeepDimensions = Callable[[Dimensions], Dimensions]
"""From the dimensions that a step can split a tensor along to those that a method considers."""


def every_variable(bound: Bound, fitting: tuple[str, ...]) -> Strategies:
    return fitting


def every_dimension(fitting: Dimensions) -> Dimensions:
    return fitting


@dataclass(frozen=True, slots=True, eq=False)
class OperatorChoices:
    """Candidate strategies of one bound operator with their regions: one axis of choices, one of workers.

    `boxes` is `[choices, workers, variables, 2]`, `inputs[name]` and `outputs[k]` the regions read and
    produced, `terms` the number of partial results per choice, `term` the one that each worker computes.
    """

    bound: Bound
    sequences: tuple[Strategies, ...]
    boxes: Boxes
    inputs: dict[str, Boxes]
    outputs: tuple[Boxes, ...]
    terms: Counts
    term: Counts


@dataclass(frozen=True, slots=True, eq=False)
class TensorChoices:
    """Candidate layouts of one shape: `regions` is `[choices, workers, dimensions, 2]`."""

    shape: Shape
    sequences: tuple[Dimensions, ...]
    regions: Boxes


def operator_choices(
    bound: Bound, sequences: Sequence[Strategies], factors: Sequence[int]
) -> OperatorChoices:
    """Evaluate the regions of all candidate strategies of an operator at once."""
    boxes = np.stack([bound.split(sequence, factors) for sequence in sequences])
    return _operator_choices(bound, sequences, factors, boxes)


def _operator_choices(
    bound: Bound, sequences: Sequence[Strategies], factors: Sequence[int], boxes: Boxes
) -> OperatorChoices:
    count, workers = boxes.shape[:2]
    flat = boxes.reshape(-1, *boxes.shape[2:])
    inputs = {
        name: regions.reshape(count, workers, *regions.shape[1:])
        for name, regions in bound.input_regions(flat).items()
        if name in bound.reads
    }
    outputs = tuple(
        regions.reshape(count, workers, *regions.shape[1:]) for regions in bound.output_regions(flat)
    )
    terms = np.ones(count, np.int64)
    term = np.zeros((count, workers), np.int64)
    for choice, sequence in enumerate(sequences):
        remaining = workers
        for variable, factor in zip(sequence, factors, strict=True):
            remaining //= factor
            if variable is not None and bound.kind(variable) == "reduce":
                terms[choice] *= factor
                term[choice] = term[choice] * factor + np.arange(workers) // remaining % factor
    return OperatorChoices(bound, tuple(sequences), boxes, inputs, outputs, terms, term)


def tensor_choices(shape: Shape, sequences: Sequence[Dimensions], factors: Sequence[int]) -> TensorChoices:
    """Evaluate the regions of all candidate layouts of a shape."""
    box = whole(shape)
    regions = np.stack([split(box, sequence, factors) for sequence in sequences])
    return TensorChoices(shape, tuple(sequences), regions)


def communication(operator: OperatorChoices, tensor: TensorChoices, source: Source) -> Counts:
    """Elements that move for every pair of choices: `[operator choices, tensor choices]`."""
    owned = tensor.regions[None]
    if isinstance(source, int):
        return collected_elements(operator.outputs[source][:, None], owned, operator.terms[:, None])
    return fetched_elements([operator.inputs[name][:, None] for name in source], owned)


def splittable(bound: Bound) -> dict[str, int]:
    """The variables along which an operator has a strategy, with their extents."""
    return {v: extent for v, extent in bound.extents.items() if bound.kind(v) is not None}


def split_further(boxes: Boxes, axes: Sequence[int | None], factor: int) -> Boxes:
    """Split every box once more, along each axis in turn: `[w, d, 2] -> [axes, w * factor, d, 2]`.

    Parts are those of `region.split`; an axis of None repeats the boxes.
    """
    repeated = np.repeat(boxes, factor, axis=0)
    part = np.arange(len(repeated))[:, None] % factor
    lower = repeated[..., 0]
    length = repeated[..., 1] - lower
    cut = np.stack((lower + part * length // factor, lower + (part + 1) * length // factor), axis=-1)
    choices = np.repeat(repeated[None], len(axes), axis=0)
    for choice, axis in enumerate(axes):
        if axis is not None:
            choices[choice, :, axis] = cut[:, axis]
    return choices


class Tables:
    """Choices and tables for one factorisation, each computed once: layers repeat.

    Bound operators are compared by identity, which is how binding caches them.
    """

    def __init__(self, factors: Sequence[int]) -> None:
        self.factors = tuple(factors)
        self._operators: dict[tuple[Bound, Strategies, KeepVariables], OperatorChoices] = {}
        self._tensors: dict[tuple[Shape, Dimensions, KeepDimensions], TensorChoices] = {}
        self._operators_near: dict[tuple[Bound, Near[str]], OperatorChoices] = {}
        self._tensors_near: dict[tuple[Shape, Near[int]], TensorChoices] = {}
        self._bytes: dict[tuple[OperatorChoices, TensorChoices, Source, int], Counts] = {}

    def operator(
        self, bound: Bound, earlier: Strategies, keep: KeepVariables = every_variable
    ) -> OperatorChoices:
        """The ways to split an operator once more that `keep` keeps; whole where that is none.

        A variable qualifies where it has a strategy and no worker group would be left without a value.
        """
        key = (bound, earlier, keep)
        found = self._operators.get(key)
        if found is None:
            step = len(earlier)
            factor = self.factors[step]
            boxes = bound.split(earlier, self.factors[:step])
            extents = (boxes[..., 1] - boxes[..., 0]).min(axis=0).tolist()
            names = bound.variables
            fitting = tuple(
                v for v, n in zip(names, extents, strict=True) if n >= factor and bound.kind(v) is not None
            )
            kept = keep(bound, fitting) or (None,)
            axes = [None if variable is None else names.index(variable) for variable in kept]
            sequences = [(*earlier, variable) for variable in kept]
            boxes = split_further(boxes, axes, factor)
            found = _operator_choices(bound, sequences, self.factors[: step + 1], boxes)
            self._operators[key] = found
        return found

    def tensor(
        self, shape: Shape, earlier: Dimensions, keep: KeepDimensions = every_dimension
    ) -> TensorChoices:
        """The ways to split a tensor once more that `keep` keeps; replicated where that is none."""
        key = (shape, earlier, keep)
        found = self._tensors.get(key)
        if found is None:
            step = len(earlier)
            factor = self.factors[step]
            boxes = split(whole(shape), earlier, self.factors[:step])
            extents = (boxes[..., 1] - boxes[..., 0]).min(axis=0).tolist()
            fitting = tuple(axis for axis, extent in enumerate(extents) if extent >= factor)
            kept = keep(fitting) or (None,)
            sequences = tuple((*earlier, axis) for axis in kept)
            found = self._tensors[key] = TensorChoices(shape, sequences, split_further(boxes, kept, factor))
        return found

    def operator_near(self, bound: Bound, near: Near[str]) -> OperatorChoices:
        """The strategies of a neighbourhood."""
        found = self._operators_near.get((bound, near))
        if found is None:
            sequences = near.sequences(splittable(bound), self.factors)
            found = self._operators_near[bound, near] = operator_choices(bound, sequences, self.factors)
        return found

    def tensor_near(self, shape: Shape, near: Near[int]) -> TensorChoices:
        """The layouts of a neighbourhood."""
        found = self._tensors_near.get((shape, near))
        if found is None:
            sequences = near.sequences(dict(enumerate(shape)), self.factors)
            found = self._tensors_near[shape, near] = tensor_choices(shape, sequences, self.factors)
        return found

    def bytes(self, operator: OperatorChoices, tensor: TensorChoices, source: Source, weight: int) -> Counts:
        """Bytes that move for every pair of choices, each element counting `weight`."""
        key = (operator, tensor, source, weight)
        found = self._bytes.get(key)
        if found is None:
            found = self._bytes[key] = communication(operator, tensor, source) * weight
        return found
