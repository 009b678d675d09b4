"""Make regions exact by trying every value of an access's index variables, if bounds alone are not exact."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ...support.integers import Integers
from ..indices.evaluate import Bulk
from ..indices.region import FAR, Boxes
from .trials import batches

MAX_TRIALS = 2**16
"""The most values that are tried for a box."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Indices of one access that share variables with each other and with no other index of it."""

    columns: tuple[int, ...]
    """The positions of the indices among all dimensions of all accesses."""

    positions: tuple[int, ...]
    """The positions of their variables among all variables."""

    values: Bulk
    """Computes the indices from the values of those variables."""

    always: bool
    """Whether the bounds may be inexact even if they lie inside the tensor."""

    def settle(self, bounds: Boxes, boxes: Boxes, limits: Integers) -> None:
        """Replace the bounds `bounds[:, columns]` by those of the values inside `[0, limits)`.

        Bounds that are already exact, or of a box that needs too many trials, are left unchanged. The caller
        (`Reader.__call__`) handles empty boxes.
        """
        mine = bounds[:, self.columns]
        extents = limits[list(self.columns)]
        outside = (mine[..., 0] < 0) | (mine[..., 1] > extents)
        intervals = boxes[:, self.positions]
        careful = (intervals[..., 0] < intervals[..., 1]).all(axis=1) & (self.always | outside.any(axis=1))
        if careful.any():
            different, back = np.unique(intervals[careful], axis=0, return_inverse=True)
            settled = mine[careful][np.unique(back.ravel(), return_index=True)[1]]
            lengths = different[..., 1] - different[..., 0]
            for each in batches(lengths, lengths.prod(axis=1), MAX_TRIALS):
                settled[each] = self._tried(different[each], extents)
            bounds[np.flatnonzero(careful)[:, None], self.columns] = settled[back.ravel()]

    def _tried(self, intervals: Boxes, extents: Integers) -> Boxes:
        """Return bounds of the values inside the tensor, `[n, column, 2]`; empty if there are none.

        All boxes have the lengths of the first.
        """
        lengths = (intervals[0, :, 1] - intervals[0, :, 0]).tolist()
        trials = prod(lengths)
        steps = np.indices(tuple(lengths)).reshape(len(lengths), trials).T
        at = intervals[:, None, :, 0] + steps
        values = self.values(at.reshape(-1, len(lengths))).reshape(len(intervals), trials, len(extents))
        inside = ((values >= 0) & (values < extents)).all(axis=-1, keepdims=True)
        first = np.where(inside, values, FAR).min(axis=1)
        last = np.where(inside, values, -1).max(axis=1)
        return np.stack((first, last + 1), axis=-1)
