"""Count what moves at least, whatever the order of later steps: the sizes of parts, not their places.

After some steps, groups have known boxes. Later steps split what each member of a group needs, makes and owns
into parts. If the order of these steps is open, so is which member has which part, but the parts as a whole
are the same. So in group g, with members w that need `r[w]` and own `t[w]`,

    overlap(r[w], t[w])  <=  product over the dimensions of  min(longest r, longest t, common length in g)
    sum of overlaps      <=  sum of |r[w]|,  and  <=  sum of |t[w]|

A count is a sum of volumes less overlaps (`box_counts`), so these bounds give the least it can be. Regions
that two reads of an operation share may be fetched once, so the read that fetches most counts alone.

Assumes: the members' boxes are those of one order of the later steps. Implemented in: `least_communication`,
`least_copying` and `least_outside` (counts), `_Sizes` (sizes).
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use


class _Sizes:
    """The sizes of the parts of every group: lengths `[..., groups, dimensions]`, sums of elements."""

    def __init__(self, regions: Boxes, groups: int) -> None:
        *leading, workers, dimensions, _ = regions.shape
        self.members = workers // groups
        boxes = regions.reshape(*leading, groups, self.members, dimensions, 2)
        self.lower = boxes[..., 0].min(axis=-2)
        self.upper = boxes[..., 1].max(axis=-2)
        self.longest = (boxes[..., 1] - boxes[..., 0]).max(axis=-2)
        self.elements: Counts = volume(boxes).sum(axis=-1)


def least_communication(operator: OperatorChoices, tensor: TensorChoices, use: Use, groups: int) -> Counts:
    """Count the elements that move at least: `[operator choices, tensor choices]`; see `communication`."""
    if not isinstance(use, int):
        versions = [tensor.regions] if tensor.copied is None else [tensor.regions, tensor.copied]
        reads = [[least_outside(operator.inputs[name], held, groups) for name in use] for held in versions]
        return np.asarray(np.minimum.reduce([np.maximum.reduce(each) for each in reads]), np.int64)
    produced, owned = _Sizes(operator.outputs[use][:, None], groups), _Sizes(tensor.regions, groups)
    each = np.maximum(operator.terms[:, None] // tensor.terms, 1)
    collected = _collected(produced, owned, each)
    if tensor.stops is None:
        return collected
    stops = _Sizes(tensor.stops, groups)
    through = _collected(produced, stops, operator.terms[:, None])
    through += (owned.elements - stops.elements).sum(axis=-1)
    reduced = (operator.terms[:, None] > 1) & (tensor.terms == 1)
    return np.where(reduced, np.minimum(collected, through), collected)


def least_outside(needed: Boxes, owned: Boxes, groups: int) -> Counts:
    """Count the elements of regions that owners lack at least: `[choices, owners' choices]`."""
    return _outside(_Sizes(needed[:, None], groups), _Sizes(owned, groups))


def least_copying(tensor: TensorChoices, groups: int) -> Counts:
    """Count the elements that move at least to make the copy of each candidate; see `copying`."""
    if tensor.copied is None:
        return np.zeros(len(tensor.sequences), np.int64)
    return _outside(_Sizes(tensor.copied, groups), _Sizes(tensor.regions, groups))


def _outside(parts: _Sizes, owned: _Sizes) -> Counts:
    """Count the elements of parts that owners lack at least."""
    counts: Counts = (parts.elements - _overlap(parts, owned)).sum(axis=-1)
    return counts


def _collected(produced: _Sizes, owned: _Sizes, terms: Counts) -> Counts:
    """Count the elements that owners fetch at least, each as many times as there are `terms`."""
    counts: Counts = (terms[..., None] * owned.elements - _overlap(produced, owned)).sum(axis=-1)
    return counts


def _overlap(parts: _Sizes, owned: _Sizes) -> Counts:
    """Return an upper bound on the sum of overlaps in each group: `[..., groups]`."""
    common = np.minimum(parts.upper, owned.upper) - np.maximum(parts.lower, owned.lower)
    common = np.minimum(np.minimum(common, parts.longest), owned.longest)
    most = np.maximum(common, 0).prod(axis=-1) * parts.members
    counts: Counts = np.minimum(np.minimum(most, parts.elements), owned.elements)
    return counts
