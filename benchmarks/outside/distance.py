"""How far two results are apart, relative to the largest element."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

FINE, COARSE = 1e-9, 1e-3
"""The largest allowed difference of two computations in 64 and in 32 bits."""


def distance(found: Iterable[npt.ArrayLike], expected: Iterable[npt.ArrayLike]) -> float:
    """Return the largest difference of any two arrays; infinite where shapes differ or one has no number."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        ours, theirs = np.asarray(one, np.float64), np.asarray(other, np.float64)
        if ours.shape != theirs.shape or (np.isfinite(ours) != np.isfinite(theirs)).any():
            return float("inf")
        there = np.isfinite(theirs)
        difference = np.abs(ours[there] - theirs[there]).max(initial=0)
        worst = max(worst, float(difference / max(np.abs(theirs[there]).max(initial=0), 1e-3)))
    return worst
