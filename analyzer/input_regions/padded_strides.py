"""Make regions exact if a padded index moves in steps across the edge of its tensor.

The values of `2 * x - 1` inside a tensor start at 1, not at 0. Clipping the bounds of an index is exact only
if its values have no gaps. If there are gaps, this file finds the first and the last value inside the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...support.integers import Integers
from ..indices.region import Boxes
from .trials import batches

MAX_TRIALS = 2**16
"""The most combinations that are tried for a box."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A padded index that is a sum of variables times integers, by increasing size of the integers.

    `column` is its place among all dimensions of all accesses, `positions` are those of its variables.
    """

    column: int
    positions: tuple[int, ...]
    factors: tuple[int, ...]

    def may_have_gaps(self, shortest: Sequence[int]) -> bool:
        """Return whether values may have gaps in any of several boxes, by the shortest length of each
        variable.
        """
        span = 0
        for factor, position in zip(self.factors, self.positions, strict=True):
            if span + 1 < factor:
                return True
            span += factor * (shortest[position] - 1)
        return False

    def settle(self, columns: Boxes, boxes: Boxes, limits: Integers) -> None:
        """Replace the bounds `columns[:, column]` of an index by those of its values inside the tensor.

        Bounds that are already exact, or that need too many trials, are left to be clipped. The caller
        (`Reader.__call__`) handles empty boxes.
        """
        extent = int(limits[self.column])
        lower, upper = columns[:, self.column, 0], columns[:, self.column, 1]
        lengths = boxes[:, self.positions, 1] - boxes[:, self.positions, 0]
        gaps = np.zeros(len(boxes), np.bool_)
        span = np.zeros(len(boxes), np.int64)
        for factor, length in zip(self.factors, lengths.T, strict=True):
            gaps |= (length > 1) & (span + 1 < factor)
            span += factor * (length - 1)
        careful = np.flatnonzero(gaps & ((lower < 0) | (upper > extent)) & (lengths > 0).all(axis=1))
        if len(careful):
            trials = lengths[careful].prod(axis=1) // lengths[careful].max(axis=1)
            for each in batches(lengths[careful], trials, MAX_TRIALS):
                rows = careful[each]
                columns[rows, self.column] = self._inside(lower[rows], lengths[rows[0]].tolist(), extent)

    def _inside(self, lower: Integers, lengths: Sequence[int], extent: int) -> Boxes:
        """Return first and last value inside `[0, extent)`, half-open, `[n, 2]`; empty if there is none.

        All boxes have these lengths. All combinations of the variables but one are tried. The last variable,
        the longest, is solved for.
        """
        free = int(np.argmax(lengths))
        others = [axis for axis in range(len(self.factors)) if axis != free]
        tried = [lengths[axis] for axis in others]
        steps = np.indices(tuple(tried)).reshape(len(others), prod(tried))
        offsets = lower[:, None] + np.array([self.factors[axis] for axis in others], np.int64) @ steps
        factor, last_step = self.factors[free], lengths[free] - 1
        first = offsets + factor * np.maximum(0, -(offsets // factor))
        last = offsets + factor * np.minimum(last_step, (extent - 1 - offsets) // factor)
        inside = (first >= 0) & (first <= last) & (last < extent)
        ends = np.where(inside, first, extent).min(axis=1), np.where(inside, last + 1, 0).max(axis=1)
        return np.stack(ends, axis=-1)
