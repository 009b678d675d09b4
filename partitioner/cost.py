"""Exact communication counts by intersecting boxes.

All functions take one box per worker, `[..., workers, dimensions, 2]`, broadcast over the leading axes and
sum over the workers. They assume nothing of where the boxes come from: any `worker -> region` will do.

What is counted is what lowering fetches. A worker needs region R of an input and owns T: it fetches
`|R| - |R n T|` elements. Where outputs are concatenated, the owner of T that computed P fetches
`|T| - |T n P|`. Where they are reduced over `n` terms, it fetches T from a holder of every term but for
what it computed itself: `n |T| - |T n P|`. An element that several workers hold is fetched once, from the
worker itself where it has a copy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..analyzer.region import Boxes, volume

Counts = npt.NDArray[np.int64]


def overlap(a: Boxes, b: Boxes) -> Counts:
    """Elements in both of two boxes: `[..., d, 2] -> [...]`."""
    lengths = np.minimum(a[..., 1], b[..., 1]) - np.maximum(a[..., 0], b[..., 0])
    common: Counts = np.maximum(lengths, 0).prod(axis=-1)
    return common


def fetched_elements(needed: Boxes, owned: Boxes) -> Counts:
    """Elements of an input that workers needing `needed` and owning `owned` fetch."""
    counts: Counts = fetched_by_worker(needed, owned).sum(axis=-1)
    return counts


def fetched_elements_once(needed: Boxes, owned: Boxes) -> Counts:
    """The same for a tensor that an operation reads several times, `needed` being `[reads, ...]`.

    A worker that reads the same region twice fetches it once.
    """
    total: Counts = fetched_once_by_worker(needed, owned).sum(axis=-1)
    return total


def collected_elements(produced: Boxes, owned: Boxes, terms: Counts | int) -> Counts:
    """Elements of an output that owners of `owned` fetch when workers computed `produced`.

    `terms` is the number of partial results that are reduced, 1 where outputs are only concatenated. The
    boxes of each term together cover the output.
    """
    counts: Counts = terms * volume(owned).sum(axis=-1) - overlap(owned, produced).sum(axis=-1)
    return counts


def fetched_by_worker(needed: Boxes, owned: Boxes) -> Counts:
    """As `fetched_elements`, before the sum: `[..., workers]`."""
    return volume(needed) - overlap(needed, owned)


def fetched_once_by_worker(needed: Boxes, owned: Boxes) -> Counts:
    """As `fetched_elements_once`, before the sum over workers: `[..., workers]`."""
    counts = fetched_by_worker(needed, owned)
    for later in range(1, len(needed)):
        same = (needed[:later] == needed[later]).all(axis=(-2, -1)).any(axis=0)
        counts[later][np.broadcast_to(same, counts[later].shape)] = 0
    total: Counts = counts.sum(axis=0)
    return total
