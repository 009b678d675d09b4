"""Share out every region among the workers that hold it, so that each has a part of its own.

Partial results that go to several holders of a region are reduced once in such parts, and then every holder
fetches the others' parts: an all-reduce, in two hops.
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import Boxes


def shared_out(regions: Boxes) -> Boxes:
    """Cut regions along their longest dimension, each into as many parts as it has holders.

    `regions` are those of the holders, `[..., holders, dimensions, 2]`, and so is the result. A region that
    has fewer elements along that dimension than holders stays whole.
    """
    if not regions.shape[-2]:
        return regions
    same = (regions[..., :, None, :, :] == regions[..., None, :, :, :]).all(axis=(-2, -1))
    count = same.sum(axis=-1)
    number = np.tril(same, -1).sum(axis=-1)
    lengths = regions[..., 1] - regions[..., 0]
    axis = lengths.argmax(axis=-1)[..., None]
    length = np.take_along_axis(lengths, axis, -1)[..., 0]
    lower = np.take_along_axis(regions[..., 0], axis, -1)[..., 0]
    number, count = np.where(length < count, 0, number), np.where(length < count, 1, count)
    cut = np.stack((lower + number * length // count, lower + (number + 1) * length // count), axis=-1)
    parts = regions.copy()
    np.put_along_axis(parts, axis[..., None], cut[..., None, :], -2)
    return parts
