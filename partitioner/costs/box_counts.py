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

from collections.abc import Sequence

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use


def overlap(a: Boxes, b: Boxes) -> Counts:
    """Elements in both of two boxes: `[..., d, 2] -> [...]`."""
    lengths = np.minimum(a[..., 1], b[..., 1]) - np.maximum(a[..., 0], b[..., 0])
    common: Counts = np.maximum(lengths, 0).prod(axis=-1)
    return common


def fetched_elements(needed: Sequence[Boxes], owned: Boxes) -> Counts:
    """Elements of a tensor that workers owning `owned` fetch, of which they need a region for each read."""
    counts: Counts = fetched_by_worker(needed, owned).sum(axis=-1)
    return counts


def fetched_by_worker(needed: Sequence[Boxes], owned: Boxes) -> Counts:
    """As `fetched_elements`, before the sum: `[..., workers]`.

    A worker that reads the same region twice fetches it once.
    """
    if len(needed) == 1:
        return volume(needed[0]) - overlap(needed[0], owned)
    reads = np.stack(needed)
    counts = volume(reads) - overlap(reads, owned)
    for later in range(1, len(reads)):
        same = (reads[:later] == reads[later]).all(axis=(-2, -1)).any(axis=0)
        counts[later][np.broadcast_to(same, counts[later].shape)] = 0
    total: Counts = counts.sum(axis=0)
    return total


def collected_elements(produced: Boxes, owned: Boxes, terms: Counts | int) -> Counts:
    """Elements of an output that owners of `owned` fetch when workers computed `produced`.

    `terms` is the number of partial results that are reduced, 1 where outputs are only concatenated. The
    boxes of each term together cover the output.
    """
    counts: Counts = terms * volume(owned).sum(axis=-1) - overlap(owned, produced).sum(axis=-1)
    return counts


def communication(operator: OperatorChoices, tensor: TensorChoices, use: Use) -> Counts:
    """Elements that move for every pair of choices: `[operator choices, tensor choices]`."""
    owned = tensor.regions[None]
    if isinstance(use, int):
        return collected_elements(operator.outputs[use][:, None], owned, operator.terms[:, None])
    return fetched_elements([operator.inputs[name][:, None] for name in use], owned)
