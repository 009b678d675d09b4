"""Count communication exactly, by intersecting boxes.

All functions take one box per worker, `[..., workers, dimensions, 2]`, broadcast over the leading axes and
sum over the workers. They assume nothing about the boxes: any map `worker -> region` will do.

The counts are those of lowering. A worker that needs region R of an input and owns T fetches `|R| - |R n T|`
elements. If outputs are concatenated, the owner of T that computed P fetches `|T| - |T n P|`. If they are
reduced over `n` terms, it fetches T from a holder of every term, except what it computed itself: `n |T| - |T
n P|`. An element that several workers hold is fetched once. A worker that has a copy uses its own.

A tensor may be held in `m` terms that are not reduced yet. An owner then fetches `n / m` terms of what it
holds, and a term that a worker computed itself counts if it is among these. If results may be reduced on
their way, in parts S of what the owners hold, the count is the lesser of both:
`n |S| - |S n P| + |T| - |T n S|`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ...support.distinct_rows import distinct_rows
from ..layouts.choices import Counts, Flags, OperatorChoices, TensorChoices
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


def collected_elements(
    produced: Boxes, owned: Boxes, terms: Counts | int, own: Flags | bool = True
) -> Counts:
    """Count the elements of an output that owners of `owned` fetch if workers computed `produced`.

    `terms` is the number of partial results that are reduced to what an owner holds, or 1 if outputs are only
    concatenated. The boxes of each term together cover the output. `own` tells which workers computed a term
    that they need.
    """
    counts: Counts = terms * volume(owned).sum(axis=-1) - (overlap(owned, produced) * own).sum(axis=-1)
    return counts


def copying(tensor: TensorChoices) -> Counts:
    """Count the elements that move to make the copy of each candidate from its home: `[choices]`."""
    if tensor.copied is None:
        return np.zeros(len(tensor.sequences), np.int64)
    moved: Counts = (volume(tensor.copied) - overlap(tensor.copied, tensor.regions)).sum(axis=-1)
    return moved


def communication(operator: OperatorChoices, tensor: TensorChoices, use: Use) -> Counts:
    """Count the elements that move for every pair of choices: `[operator choices, tensor choices]`.

    Pairs that `impossible` names are counted as if they could be. Choices that touch the same regions, such
    as those that differ in variables of other tensors, are counted once. An operation reads the copy of a
    tensor if it fetches less from there than from the home.
    """
    if not isinstance(use, int):
        regions = [operator.inputs[name] for name in use]
        first, number = distinct_rows(*regions)
        needed = [each[first, None] for each in regions]
        fetched = fetched_elements(needed, tensor.regions[None])
        if tensor.copied is not None:
            fetched = np.minimum(fetched, fetched_elements(needed, tensor.copied[None]))
        return fetched[number]
    first, number = distinct_rows(operator.outputs[use], operator.terms, operator.term)
    produced, terms, term = operator.outputs[use][first], operator.terms[first], operator.term[first]
    counts = _collected(produced, terms, term, tensor)
    several = np.flatnonzero(terms > 1)
    if tensor.stops is not None and len(several):
        stops, owned = tensor.stops, tensor.regions
        spread = volume(owned).sum(axis=-1) - overlap(owned, stops).sum(axis=-1)
        through = collected_elements(produced[several, None], stops[None], terms[several, None]) + spread
        counts[several] = np.where(tensor.terms > 1, counts[several], np.minimum(counts[several], through))
    return counts[number]


def _collected(produced: Boxes, terms: Counts, term: Counts, tensor: TensorChoices) -> Counts:
    """Count the elements that owners fetch from those who computed them, in one hop."""
    if (tensor.terms == 1).all():
        return collected_elements(produced[:, None], tensor.regions[None], terms[:, None])
    each = np.maximum(terms[:, None] // tensor.terms, 1)
    own = term[:, None] // each[..., None] == tensor.term
    return collected_elements(produced[:, None], tensor.regions[None], each, own)


def impossible(
    operator: OperatorChoices, tensor: TensorChoices, use: Use, summed: frozenset[str]
) -> Flags | None:
    """Tell which pairs of choices cannot be: `[operator choices, tensor choices]`; None if all can be.

    A tensor has terms at steps at which the operation makes them. An operation reads terms of the tensors in
    whose sum it is linear, `summed`, and of no others.
    """
    if isinstance(use, int):
        if not tensor.partial.any():
            return None
        return np.asarray((tensor.partial[None] & ~operator.makes[:, None]).any(axis=-1))
    if not (tensor.partial.any() or operator.reads_at.any()):
        return None
    reads = operator.reads_at[:, None] & (not summed.isdisjoint(use))
    wrong: Flags = np.asarray((tensor.partial[None] != reads).any(axis=-1))
    if not summed.issuperset(use):
        wrong |= tensor.partial.any(axis=-1)
    return wrong
