"""Layouts: which region of a tensor each worker owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.region import Boxes, Region, Shape, split, to_region, volume, whole


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One region per worker: `regions` is `[workers, dimensions, 2]`.

    Regions may overlap (replication) and may be empty (the worker owns nothing); together they cover the
    tensor. Nothing more may be assumed of them.
    """

    regions: Boxes

    @property
    def workers(self) -> int:
        return len(self.regions)

    def region(self, worker: int) -> Region:
        return to_region(self.regions[worker])

    def elements(self) -> int:
        """Elements held by all workers together; more than the tensor has where parts are replicated."""
        return int(volume(self.regions).sum())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and np.array_equal(self.regions, other.regions)

    def __hash__(self) -> int:
        return hash((self.regions.shape, self.regions.tobytes()))


def split_layout(shape: Shape, dimensions: Sequence[int | None], factors: Sequence[int]) -> Layout:
    """Tofu's layout: step `i` splits one dimension in `factors[i]` parts; None replicates (section 5.2)."""
    return Layout(split(whole(shape), dimensions, factors))


def replicated(shape: Shape, workers: int) -> Layout:
    """Every worker owns the whole tensor."""
    return Layout(np.repeat(whole(shape)[None], workers, axis=0))


def placed(shape: Shape, workers: int, owner: int) -> Layout:
    """One worker owns the whole tensor, the others nothing."""
    regions = np.zeros((workers, len(shape), 2), np.int64)
    regions[owner] = whole(shape)
    return Layout(regions)
