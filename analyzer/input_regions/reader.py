"""Compute the input regions of many boxes at once, in plain integer array arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...support.integers import Integers
from ..indices.evaluate import Bulk
from ..indices.region import FAR, Boxes
from .enumerated_bounds import Trial
from .padded_strides import Edge


@dataclass(frozen=True, slots=True)
class TensorAccesses:
    """The accesses of one tensor."""

    tensor: str
    """The tensor's name."""

    rank: int
    """The tensor's number of dimensions."""

    start: int
    """The column of the first access's first dimension, among all dimensions of all accesses."""

    count: int
    """The number of accesses."""

    enclosing: tuple[tuple[int, ...], ...]
    """For each access, the positions of the variables around it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Computes the regions of a description for given shapes."""

    bulk: Bulk
    """Computes a lower and an upper bound for each dimension of each access."""

    limits: Integers
    """The extents of these dimensions."""

    refinements: tuple[Edge | Trial, ...]
    """Replace bounds that are not exact."""

    readings: tuple[TensorAccesses, ...]
    """The accesses by tensor. Tensors that are absent are never read."""

    ranks: Mapping[str, int]
    """The number of dimensions of every tensor."""

    def __call__(self, boxes: Boxes) -> dict[str, Boxes]:
        """Return the regions of each tensor, `[n, dimension, 2]`, for boxes `[n, variable, 2]`."""
        count = len(boxes)
        columns = self.bulk(boxes.reshape(count, 2 * boxes.shape[1])).reshape(count, len(self.limits), 2)
        lower, upper = columns[..., 0], columns[..., 1]
        lengths = boxes[..., 1] - boxes[..., 0]
        shortest: list[int] = np.minimum.reduce(lengths, axis=0, initial=FAR).tolist()
        for refinement in self.refinements:
            if isinstance(refinement, Trial) or refinement.may_have_gaps(shortest):
                refinement.settle(columns, boxes, self.limits)
        np.maximum(lower, 0, out=lower)
        np.minimum(upper, self.limits, out=upper)
        occupied = min(shortest, default=1) > 0 and bool((lower < upper).all())
        regions = {}
        for reading in self.readings:
            stop = reading.start + reading.count * reading.rank
            mine = columns[:, reading.start : stop].reshape(count, reading.count, reading.rank, 2)
            regions[reading.tensor] = _hull(mine) if occupied else _hull_of_some(mine, lengths > 0, reading)
        return {
            name: regions[name] if name in regions else np.zeros((count, rank, 2), np.int64)
            for name, rank in self.ranks.items()
        }


def _hull(boxes: Boxes) -> Boxes:
    """Return the smallest boxes around all accesses: `[n, access, dimension, 2] -> [n, dimension, 2]`."""
    if boxes.shape[1] == 1:
        single: Boxes = boxes[:, 0]
        return single
    hull = np.empty((len(boxes), *boxes.shape[2:]), np.int64)
    boxes[..., 0].min(axis=1, out=hull[..., 0])
    boxes[..., 1].max(axis=1, out=hull[..., 1])
    return hull


def _hull_of_some(boxes: Boxes, full: npt.NDArray[np.bool_], reading: TensorAccesses) -> Boxes:
    """Return as `_hull`, without accesses that read nothing; zeros if no access reads anything."""
    reads: npt.NDArray[np.bool_] = np.asarray((boxes[..., 0] < boxes[..., 1]).all(axis=-1))
    for access, variables in enumerate(reading.enclosing):
        reads[:, access] &= full[:, variables].all(axis=-1)
    ignored = ~reads[..., None]
    hull = _hull(
        np.stack((np.where(ignored, FAR, boxes[..., 0]), np.where(ignored, -FAR, boxes[..., 1])), axis=-1)
    )
    hull[~reads.any(axis=1)] = 0
    return hull
