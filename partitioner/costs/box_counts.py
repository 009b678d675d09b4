"""Count communication exactly, by intersecting boxes.

All functions take one box per worker, `[..., workers, dimensions, 2]`, broadcast over the leading axes and
sum over the workers. They assume nothing about the boxes: any map `worker -> region` will do.

The counts are those of lowering. A worker that needs region R of an input and owns T fetches `|R| - |R n T|`
elements. If outputs are concatenated, the owner of T that computed P fetches `|T| - |T n P|`. If they are
reduced over `n` terms, it fetches T from a holder of every term, except what it computed itself: `n |T| - |T
n P|`. An element that several workers hold is fetched once. A worker that has a copy uses its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use


def overlap(a: Boxes, b: Boxes) -> Counts:
    """Count the elements in both of two boxes: `[..., d, 2] -> [...]`."""
    lengths = np.minimum(a[..., 1], b[..., 1]) - np.maximum(a[..., 0], b[..., 0])
    common: Counts = np.maximum(lengths, 0).prod(axis=-1)
    return common


def fetched_elements(needed: Sequence[Boxes], owned: Boxes) -> Counts:
    """Count the elements of a tensor that owners of `owned` fetch; `needed` has one region for each read."""
    counts: Counts = fetched_by_worker(needed, owned).sum(axis=-1)
    return counts


def fetched_by_worker(needed: Sequence[Boxes], owned: Boxes) -> Counts:
    """Count like `fetched_elements`, but before the sum: `[..., workers]`.

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
    """Count the elements of an output that owners of `owned` fetch if workers computed `produced`.

    `terms` is the number of partial results that are reduced, or 1 if outputs are only concatenated. The
    boxes of each term together cover the output.
    """
    counts: Counts = terms * volume(owned).sum(axis=-1) - overlap(owned, produced).sum(axis=-1)
    return counts


def communication(operator: OperatorChoices, tensor: TensorChoices, use: Use) -> Counts:
    """Count the elements that move for every pair of choices: `[operator choices, tensor choices]`."""
    owned = tensor.regions[None]
    if isinstance(use, int):
        return collected_elements(operator.outputs[use][:, None], owned, operator.terms[:, None])
    return fetched_elements([operator.inputs[name][:, None] for name in use], owned)
