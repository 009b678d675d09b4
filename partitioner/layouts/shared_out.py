"""Share out every region among the workers that hold it, so that each has a part of its own.

Partial results that go to several holders of a region are reduced once in such parts, and then every holder
fetches the others' parts: an all-reduce, in two hops.
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import Boxes
from ...support.distinct_rows import distinct_rows


def shared_out(regions: Boxes) -> Boxes:
    """Cut regions along their longest dimension, each into as many parts as it has holders.

    `regions` are those of the holders, `[..., holders, dimensions, 2]`, and so is the result. A region that
    has fewer elements along that dimension than holders stays whole.
    """
    if not regions.size:
        return regions
    holders = regions.shape[-3]
    rows = regions.reshape(-1, 2 * regions.shape[-2])
    _, region = distinct_rows(np.arange(len(rows)) // holders, rows)
    counts, order = np.bincount(region), region.argsort(kind="stable")
    numbers = np.empty(len(rows), np.int64)
    numbers[order] = np.arange(len(rows)) - (counts.cumsum() - counts)[region[order]]
    count, number = (each.reshape(regions.shape[:-2]) for each in (counts[region], numbers))
    lengths = regions[..., 1] - regions[..., 0]
    axis = lengths.argmax(axis=-1)[..., None]
    length = np.take_along_axis(lengths, axis, -1)[..., 0]
    lower = np.take_along_axis(regions[..., 0], axis, -1)[..., 0]
    number, count = np.where(length < count, 0, number), np.where(length < count, 1, count)
    cut = np.stack((lower + number * length // count, lower + (number + 1) * length // count), axis=-1)
    parts = regions.copy()
    np.put_along_axis(parts, axis[..., None], cut[..., None, :], -2)
    return parts
