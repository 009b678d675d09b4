"""Candidate splits of operators and tensors, with the regions that every worker gets.

A choice is a sequence with one entry per step. The entry is the index variable along which an operation is
split, or the dimension along which a tensor is split, or None if the step replicates it. Choices of `i`
entries describe the graph split over the product of the first `i` factors. Fetched data is included because
an operation's regions follow from its own nested boxes (Tofu, section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, split, whole
from .step_split import Dimensions, Strategies

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorChoices:
    """Candidate strategies of one bound operator with their regions."""

    bound: Bound
    """The operator, bound to shapes."""

    sequences: tuple[Strategies, ...]
    """The candidates: a sequence of index variables each, None for a step that does not split."""

    boxes: Boxes
    """Each worker's part of the iteration space: `[choices, workers, variables, 2]`."""

    inputs: dict[str, Boxes]
    """For each parameter, the regions that are read: `[choices, workers, dimensions, 2]`."""

    outputs: tuple[Boxes, ...]
    """For each output, the regions that are produced, likewise."""

    terms: Counts
    """The number of partial results of each choice: `[choices]`."""

    term: Counts
    """The number of the partial result that each worker computes: `[choices, workers]`."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorChoices:
    """Candidate layouts of one shape with their regions."""

    shape: Shape
    """The shape of the tensors."""

    sequences: tuple[Dimensions, ...]
    """The candidates: a sequence of dimensions each, None for a step that replicates."""

    regions: Boxes
    """Each worker's region: `[choices, workers, dimensions, 2]`."""


def operator_choices(
    bound: Bound, sequences: Sequence[Strategies], factors: Sequence[int]
) -> OperatorChoices:
    """Evaluate the regions of all candidate strategies of an operator at once."""
    boxes = np.stack([bound.split(sequence, factors) for sequence in sequences])
    return choices_of_boxes(bound, sequences, factors, boxes)


def choices_of_boxes(
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


def splittable(bound: Bound) -> dict[str, int]:
    """Return the variables along which an operator has a strategy, with their extents."""
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
