"""Input regions of many boxes at once, in plain integer array arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..indices.evaluate import Bulk, Integers
from ..indices.region import FAR, Boxes
from .enumerated_bounds import Trial
from .padded_strides import Edge


@dataclass(frozen=True, slots=True)
class Reading:
    """The accesses of one tensor: `count` of them, in the columns from `start` on.

    `enclosing[a]` are the positions of the variables around access `a`.
    """

    tensor: str
    rank: int
    start: int
    count: int
    enclosing: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """Regions of a description for given shapes.

    `bulk` gives a lower and an upper bound for each dimension of each access, `limits` are the extents of
    these dimensions. Tensors not in `readings` are never read.
    """

    bulk: Bulk
    limits: Integers
    refinements: tuple[Edge | Trial, ...]
    readings: tuple[Reading, ...]
    ranks: Mapping[str, int]

    def __call__(self, boxes: Boxes) -> dict[str, Boxes]:
        """`[n, variable, 2]` to `[n, dimension, 2]` for each tensor."""
        count = len(boxes)
        columns = self.bulk(boxes.reshape(count, 2 * boxes.shape[1])).reshape(count, len(self.limits), 2)
        lower, upper = columns[..., 0], columns[..., 1]
        lengths = boxes[..., 1] - boxes[..., 0]
        shortest = lengths.min(axis=0, initial=FAR).tolist()
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
    """The smallest boxes around all accesses: `[n, access, dimension, 2] -> [n, dimension, 2]`."""
    if boxes.shape[1] == 1:
        single: Boxes = boxes[:, 0]
        return single
    hull = np.empty((len(boxes), *boxes.shape[2:]), np.int64)
    boxes[..., 0].min(axis=1, out=hull[..., 0])
    boxes[..., 1].max(axis=1, out=hull[..., 1])
    return hull


def _hull_of_some(boxes: Boxes, full: npt.NDArray[np.bool_], reading: Reading) -> Boxes:
    """As `_hull`, without accesses that read nothing; zeros where no access reads anything."""
    reads: npt.NDArray[np.bool_] = np.asarray((boxes[..., 0] < boxes[..., 1]).all(axis=-1))
    for access, variables in enumerate(reading.enclosing):
        reads[:, access] &= full[:, variables].all(axis=-1)
    ignored = ~reads[..., None]
    hull = _hull(
        np.stack((np.where(ignored, FAR, boxes[..., 0]), np.where(ignored, -FAR, boxes[..., 1])), axis=-1)
    )
    hull[~reads.any(axis=1)] = 0
    return hull
