"""Offsets for buffers with known lifetimes in one arena: best fit, the longest-lived first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

ALIGNMENT_BYTES = 64
_UNLIMITED = np.iinfo(np.int64).max // 2


def place(sizes: Integers, births: Integers, deaths: Integers) -> tuple[Integers, int]:
    """Offsets of buffers and the size of the arena that holds them, in the unit of `sizes`.

    Buffer `i` is live from tick `births[i]` to `deaths[i]`, both included. Buffers that are live at a
    common tick get disjoint memory. Each buffer in turn, longest-lived first and larger before smaller,
    goes into the smallest gap that is large enough among the buffers placed already whose lifetimes meet
    its own.
    """
    count = len(sizes)
    order = np.lexsort((births, -sizes, births - deaths))
    sizes, births, deaths = sizes[order], births[order], deaths[order]
    starts = np.zeros(count, np.int64)
    ends = np.zeros(count, np.int64)
    for index in range(count):
        meets = np.flatnonzero((births[:index] <= deaths[index]) & (deaths[:index] >= births[index]))
        by_start = meets[np.argsort(starts[meets], kind="stable")]
        gap_starts = np.zeros(len(meets) + 1, np.int64)
        np.maximum.accumulate(ends[by_start], out=gap_starts[1:])
        gaps = np.append(starts[by_start], _UNLIMITED) - gap_starts
        fitting = np.flatnonzero(gaps >= sizes[index])
        starts[index] = gap_starts[fitting[np.argmin(gaps[fitting])]]
        ends[index] = starts[index] + sizes[index]
    offsets = np.empty(count, np.int64)
    offsets[order] = starts
    return offsets, int(ends.max(initial=0))
