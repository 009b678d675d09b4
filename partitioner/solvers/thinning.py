"""Thin runs of points to a limit, so that tables of frontiers stay small, from above or from below.

A run that is too long is cut into buckets, by the place of each point between the ends of the run:

    place(p)  =  (memory(p) - memory(first)) / (memory(last) - memory(first))
               + (time(first) - time(p)) / (time(first) - time(last))            from 0 to 2

The first and the last point have a bucket each, so the least memory and the least time stay exact. From
above, the point of a bucket that is nearest to both axes stays: every point of the result is one of the run.
From below, a corner takes the place of a bucket: its least memory and its least time. Every point of the run
then has a corner that is not above it in either coordinate, and sums and unions of corners keep that.
Implemented in: `thinned`, `run_loops.fewer` if numba is installed, else `_thinned`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...support.compiled import compiler
from .runs import Runs

LEAST_LIMIT = 3
"""The smallest limit: both ends, and one bucket between them."""


def thinned(table: Runs, limit: int, *, corners: bool) -> Runs:
    """Return the table with at most `limit` points for each entry: some of them, or corners below them.

    Runs that are not longer stay as they are. Moving all points of a run moves the result by as much.
    """
    lengths = table.lengths
    if not (lengths > limit).any():
        return table
    if compiler() is not None:
        from .run_loops import fewer

        return Runs(table.shape, *fewer(table.offsets, table.times, table.memory, limit, corners))
    return _thinned(table, limit, corners)


def _thinned(table: Runs, limit: int, corners: bool) -> Runs:
    """Thin all runs at once, without a loop."""
    lengths = table.lengths
    owners = np.repeat(np.arange(table.entries), lengths)
    first, last = table.offsets[:-1][owners], table.offsets[1:][owners] - 1
    numbers = np.arange(table.size)
    inner = (numbers > first) & (numbers < last) & (lengths[owners] > limit)
    places = _places(table, first, last)
    buckets = np.minimum((places * ((limit - 2) / 2)).astype(np.int64), limit - 3)
    begins = np.ones(table.size, np.bool_)
    begins[1:] = ~(inner[1:] & inner[:-1] & (buckets[1:] == buckets[:-1]))
    starts = np.flatnonzero(begins)
    offsets = np.concatenate([[0], np.cumsum(begins)])[table.offsets]
    if corners:
        ends = np.append(starts[1:], table.size) - 1
        return Runs(table.shape, offsets, table.times[ends], table.memory[starts])
    nearest = _nearest(table, first, last, starts)
    return Runs(table.shape, offsets, table.times[nearest], table.memory[nearest])


def _share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray(part / np.maximum(whole, 1))


def _places(
    table: Runs, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the place of each point between the ends of its run."""
    times, memory = table.times, table.memory
    return _share(memory - memory[first], memory[last] - memory[first]) + _share(
        times[first] - times, times[first] - times[last]
    )


def _nearest(
    table: Runs,
    first: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return each bucket's point with the least sum of shares of memory and time, the first of equals."""
    times, memory = table.times, table.memory
    sums = _share(memory - memory[first], memory[last] - memory[first]) + _share(
        times - times[last], times[first] - times[last]
    )
    least = np.repeat(np.minimum.reduceat(sums, starts), np.diff(np.append(starts, len(sums))))
    numbers = np.where(sums == least, np.arange(len(sums)), len(sums))
    return np.asarray(np.minimum.reduceat(numbers, starts))
