"""Candidate splits of operators and tensors, with the regions that every worker gets.

A choice is a sequence with one entry per step. The entry is the index variable along which an operation is
split, or the dimension along which a tensor is split, or None if the step replicates it. `Partial` gives each
group another term of a tensor that is not reduced yet, and lets an operation read its own group's terms.
Choices of `i` entries describe the graph split over the product of the first `i` factors. Fetched data is
included because an operation's regions follow from its own nested boxes (Tofu, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, flattened, split, whole
from .forms import Partial, numbered
from .shared_out import shared_out
from .step_split import Dimensions, Strategies

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Axes = tuple[int | None, ...]
"""The dimension that each step splits."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class OperatorChoices:
    """Candidate strategies of one bound operator with their regions."""

    bound: Bound
    """The operator, bound to shapes."""

    sequences: tuple[Strategies, ...]
    """The candidates: an index variable per step, `Partial`, or None for a step that does not split."""

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

    makes: Flags
    """At which steps the groups make different partial results: `[choices, steps]`."""

    reads: Counts
    """The number of terms of its inputs that each choice reads: `[choices]`."""

    read: Counts
    """The number of the term that each worker reads: `[choices, workers]`."""

    reads_at: Flags
    """At which steps the groups read different terms: `[choices, steps]`."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorChoices:
    """Candidate layouts of one shape with their regions."""

    shape: Shape
    """The shape of the tensors."""

    sequences: tuple[Dimensions, ...]
    """The candidates: a dimension per step, `Partial`, or None for a step that replicates."""

    regions: Boxes
    """Each worker's region: `[choices, workers, dimensions, 2]`."""

    terms: Counts
    """The number of terms of each choice: `[choices]`."""

    term: Counts
    """The number of the term that each worker holds: `[choices, workers]`."""

    partial: Flags
    """At which steps the groups hold different terms: `[choices, steps]`."""

    stops: Boxes | None
    """Where partial results may be reduced on their way, like `regions`; None if they may not."""

    copies: tuple[Dimensions | None, ...] = ()
    """The layout of each candidate's copy, None for a candidate without one; empty if none has one."""

    copied: Boxes | None = None
    """The regions of copies, like `regions`, which stand for themselves if there is no copy; None if none has
    one."""

    def number(self, sequence: Dimensions, copy: Dimensions | None = None) -> int:
        """Return the number of the candidate with this layout and copy. Raises ValueError if none has."""
        if copy is None:
            return self.sequences.index(sequence)
        return list(zip(self.sequences, self.copies, strict=True)).index((sequence, copy))


def operator_choices(
    bound: Bound, sequences: Sequence[Strategies], factors: Sequence[int]
) -> OperatorChoices:
    """Evaluate the regions of all candidate strategies of an operator at once."""
    boxes = np.stack([bound.split(variables(sequence), factors) for sequence in sequences])
    return choices_of_boxes(bound, sequences, factors, boxes)


def choices_of_boxes(
    bound: Bound, sequences: Sequence[Strategies], factors: Sequence[int], boxes: Boxes
) -> OperatorChoices:
    count, workers = boxes.shape[:2]
    flat = flattened(boxes)
    inputs = {
        name: regions.reshape(count, workers, *regions.shape[1:])
        for name, regions in bound.input_regions(flat).items()
        if name in bound.reads
    }
    outputs = tuple(
        regions.reshape(count, workers, *regions.shape[1:]) for regions in bound.output_regions(flat)
    )
    reducing = _steps_where(sequences, lambda entry: isinstance(entry, str) and bound.kind(entry) == "reduce")
    reads_at = _steps_where(sequences, _is_partial)
    reads, read = _numbered(reads_at, factors)
    within, term = _numbered(reducing, factors)
    term = read * within[:, None] + term
    return OperatorChoices(
        bound, tuple(sequences), boxes, inputs, outputs, reads * within, term,
        reducing | reads_at, reads, read, reads_at,
    )  # fmt: skip


def tensor_choices(
    shape: Shape, sequences: Sequence[Dimensions], factors: Sequence[int], stops: bool = False
) -> TensorChoices:
    """Evaluate the regions of all candidate layouts of a shape; with `stops`, those on the way as well."""
    box = whole(shape)
    regions = np.stack([split(box, axes(sequence), factors) for sequence in sequences])
    return choices_of_regions(shape, sequences, factors, regions, stops)


def choices_of_regions(
    shape: Shape, sequences: Sequence[Dimensions], factors: Sequence[int], regions: Boxes, stops: bool
) -> TensorChoices:
    partial = _steps_where(sequences, _is_partial)
    terms, term = _numbered(partial, factors)
    found = None
    if stops:
        found = np.where((terms == 1)[:, None, None, None], shared_out(regions), regions)
    return TensorChoices(shape, tuple(sequences), regions, terms, term, partial, found)


def with_copies(homes: TensorChoices, layouts: TensorChoices) -> TensorChoices:
    """Return candidates of a home alone, then all pairs of a home and a copy in another layout.

    Terms that are not reduced have no copy, and none is one.
    """
    apart = np.array([[home != copy for copy in layouts.sequences] for home in homes.sequences], np.bool_)
    home, copy = np.nonzero(apart & (homes.terms == 1)[:, None] & (layouts.terms == 1))
    alone = np.arange(len(homes.sequences))
    return paired(
        homes, layouts, np.concatenate((alone, home)), np.concatenate((np.full(len(alone), -1), copy))
    )


def paired(homes: TensorChoices, layouts: TensorChoices, home: Counts, copy: Counts) -> TensorChoices:
    """Return candidates by the numbers of their home and of the layout of their copy, -1 for none."""
    return replace(
        homes,
        sequences=tuple([homes.sequences[number] for number in home]),
        regions=homes.regions[home],
        terms=homes.terms[home],
        term=homes.term[home],
        partial=homes.partial[home],
        stops=None if homes.stops is None else homes.stops[home],
        copies=tuple([None if number < 0 else layouts.sequences[number] for number in copy]),
        copied=np.where((copy < 0)[:, None, None, None], homes.regions[home], layouts.regions[copy]),
    )


def axes(sequence: Dimensions) -> Axes:
    """Return the dimension that each step splits."""
    return tuple(None if isinstance(entry, Partial) else entry for entry in sequence)


def variables(sequence: Strategies) -> tuple[str | None, ...]:
    """Return the variable that each step splits."""
    return tuple(None if isinstance(entry, Partial) else entry for entry in sequence)


def _is_partial(entry: object) -> bool:
    return isinstance(entry, Partial)


def _steps_where(sequences: Sequence[Strategies | Dimensions], holds: Callable[[object], bool]) -> Flags:
    return np.array([[holds(entry) for entry in sequence] for sequence in sequences], np.bool_).reshape(
        len(sequences), -1
    )


def _numbered(steps: Flags, factors: Sequence[int]) -> tuple[Counts, Counts]:
    """Return the number of terms of every choice, and that of each worker; groups differ at these steps."""
    found = {row.tobytes(): numbered(row.tolist(), factors) for row in steps}
    each = [found[row.tobytes()] for row in steps]
    return np.array([terms for _, terms in each], np.int64), np.stack([term for term, _ in each])


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
