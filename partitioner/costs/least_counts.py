"""Count what moves at least, whatever the order of later steps: the sizes of parts, not their places.

After some steps, groups have known boxes. Later steps split what each member of a group needs, makes and owns
into parts. If the order of these steps is open, so is which member has which part, but the parts as a whole
are the same. So in group g, with members w that need `r[w]` and own `t[w]`,

    overlap(r[w], t[w])  <=  product over the dimensions of  min(longest r, longest t, common length in g)
    sum of overlaps      <=  sum of |r[w]|,  and  <=  sum of |t[w]|

A count is a sum of volumes less overlaps (`box_counts`), so these bounds give the least it can be. Regions
that two reads of an operation share may be fetched once, so the read that fetches most counts alone.

Assumes: the members' boxes are those of one order of the later steps. Implemented in: `least_communication`
(counts), `_Sizes` (sizes).
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use


class _Sizes:
    """The sizes of the parts of every group: lengths `[choices, groups, dimensions]`, sums of elements."""

    def __init__(self, regions: Boxes, groups: int) -> None:
        choices, workers, dimensions, _ = regions.shape
        self.members = workers // groups
        boxes = regions.reshape(choices, groups, self.members, dimensions, 2)
        self.lower = boxes[..., 0].min(axis=2)
        self.upper = boxes[..., 1].max(axis=2)
        self.longest = (boxes[..., 1] - boxes[..., 0]).max(axis=2)
        self.elements: Counts = volume(boxes).sum(axis=-1)


def least_communication(operator: OperatorChoices, tensor: TensorChoices, use: Use, groups: int) -> Counts:
    """Count the elements that move at least: `[operator choices, tensor choices]`; see `communication`."""
    owned = _Sizes(tensor.regions, groups)
    if isinstance(use, int):
        wanted = operator.terms[:, None, None] * owned.elements
        collected: Counts = (wanted - _overlap(_Sizes(operator.outputs[use], groups), owned)).sum(axis=-1)
        return collected
    needed = [_Sizes(operator.inputs[name], groups) for name in use]
    reads = [(read.elements[:, None] - _overlap(read, owned)).sum(axis=-1) for read in needed]
    return np.asarray(np.maximum.reduce(reads), np.int64)


def _overlap(parts: _Sizes, owned: _Sizes) -> Counts:
    """Return an upper bound on the sum of overlaps in each group: `[choices, owners' choices, groups]`."""
    common = np.minimum(parts.upper[:, None], owned.upper) - np.maximum(parts.lower[:, None], owned.lower)
    common = np.minimum(np.minimum(common, parts.longest[:, None]), owned.longest)
    most = np.maximum(common, 0).prod(axis=-1) * parts.members
    counts: Counts = np.minimum(np.minimum(most, parts.elements[:, None]), owned.elements)
    return counts
