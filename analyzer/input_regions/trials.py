"""Boxes whose values are tried, in batches that fit the memory.

The choice to try a box depends on the box alone, so its region is the same wherever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...support.integers import Integers

BATCH_TRIALS = 2**20
"""The most values that are tried at once, if a box has no more."""


def batches(lengths: Integers, trials: Integers, most: int) -> Iterator[Integers]:
    """Yield the places of boxes that need at most `most` trials, those of equal lengths `[n, d]` together."""
    few = np.flatnonzero(trials <= most)
    _, group = np.unique(lengths[few], axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    ends = np.flatnonzero(np.diff(group.ravel()[order])) + 1
    for equal in np.split(few[order], ends):
        size = max(BATCH_TRIALS // max(int(trials[equal[:1]].sum()), 1), 1)
        for begin in range(0, len(equal), size):
            yield equal[begin : begin + size]
