"""Tables whose entries are runs of points: pairs of time and memory of which none is below another in both.

    table     shape [n, m, ...], with a run for every entry, in row-major order
    run       points in rising order of memory, and so in falling order of time; it may be empty
    multiply  the sums of all pairs of points of two entries, reduced (the product of TensorOpt, section 3.1)
    add       the points of all entries along an axis, reduced (the union there)
    reduce    drops every point that another one is below in one coordinate and not above in the other, and
              all but one of equal points

TensorOpt's algorithm 1 sorts by memory alone, so of points with equal memory it may keep several. Here equal
memory is sorted by time, so one is kept. All runs of a table lie one after the other in two flat arrays.
Implemented in: `combined` (multiply, add and reduce in one pass), `multiplied`, `projected`, `shifted`.

Cost: `combined` merges one run after the other into the reduced ones if numba is installed, which takes time
in proportion to points times runs. Otherwise it sorts all sums of a piece of the table at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...support.integers import Integers

PIECE_POINTS = 1 << 20
"""The number of sums that are sorted at a time."""

LARGEST_KEY = 1 << 62
"""Times are replaced by their ranks if keys made of them would exceed this."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """A table of runs of points, which can be indexed, transposed and reshaped as an array can."""

    shape: tuple[int, ...]
    """The number of values of each axis."""

    offsets: Integers
    """Where the run of each entry begins, `[entries + 1]`; the last one is the number of points."""

    times: Integers
    """The times of all points, `[points]`."""

    memory: Integers
    """The memory of all points, `[points]`."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of points."""
        return len(self.times)

    @property
    def dtype(self) -> np.dtype[np.int64]:
        return self.times.dtype

    @property
    def entries(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Integers:
        """Return the number of points of each entry, `[entries]`."""
        return np.diff(self.offsets)

    def is_single(self) -> bool:
        """Tell whether every entry has one point."""
        return self.size == self.entries and bool((self.lengths == 1).all())

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers]:
        """Return the arrays by which tables are compared."""
        return self.offsets, self.times, self.memory

    def reshape(self, shape: Sequence[int]) -> Runs:
        return Runs(tuple(shape), self.offsets, self.times, self.memory)

    def transpose(self, order: Sequence[int]) -> Runs:
        if tuple(order) == tuple(range(self.ndim)):
            return self
        return self.taken(self._places().transpose(order))

    def __getitem__(self, key: Any) -> Runs:
        return self.taken(self._places()[key])

    def _places(self) -> Integers:
        return np.arange(self.entries).reshape(self.shape)

    def taken(self, entries: Integers) -> Runs:
        """Return a table, of the shape of `entries`, of the runs with these numbers."""
        entries = np.asarray(entries)
        numbers = entries.ravel()
        offsets = _offsets(self.lengths[numbers])
        found = _ranges(self.offsets[numbers], np.diff(offsets))
        return Runs(entries.shape, offsets, self.times[found], self.memory[found])

    def kept(self, mask: npt.NDArray[np.bool_]) -> Runs:
        """Return the table with the points of a mask alone."""
        before = np.concatenate([[0], np.cumsum(mask)])
        return Runs(self.shape, before[self.offsets], self.times[mask], self.memory[mask])


def _offsets(lengths: Integers) -> Integers:
    """Return where runs of these lengths begin, and where the last one ends."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def _ranges(starts: Integers, lengths: Integers) -> Integers:
    """Return `starts[i], ..., starts[i] + lengths[i] - 1` for every i, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def single(times: npt.ArrayLike, memory: npt.ArrayLike) -> Runs:
    """Return the table with one point for every entry, given two arrays of one shape."""
    first = np.array(times, np.int64)
    second = np.array(memory, np.int64)
    return Runs(first.shape, np.arange(first.size + 1), first.ravel(), second.ravel())


NOTHING = single(0, 0)
"""The table without axes that changes nothing if it is multiplied."""


def shifted(table: Runs, time: int, memory: int) -> Runs:
    """Return the table with all points moved."""
    return Runs(table.shape, table.offsets, table.times + time, table.memory + memory)


def multiplied(a: Runs, b: Runs) -> Runs:
    """Return the product of two tables that broadcast against each other."""
    if a.is_single() and b.is_single():
        return _added(a, b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    found = combined([a.reshape((*a.shape, 1)), b.reshape((*b.shape, 1))], (*shape, 1), len(shape))
    return found.reshape(shape)


def _added(a: Runs, b: Runs) -> Runs:
    """Return the product of two tables with one point for every entry."""
    times = a.times.reshape(a.shape) + b.times.reshape(b.shape)
    memory = a.memory.reshape(a.shape) + b.memory.reshape(b.shape)
    return Runs(times.shape, np.arange(times.size + 1), times.ravel(), memory.ravel())


def reduced(owners: Integers, times: Integers, memory: Integers, entries: int) -> tuple[Integers, ...]:
    """Reduce points that belong to entries `owners`; return offsets, times and memory."""
    order = np.lexsort((times, memory, owners))
    owners, times, memory = owners[order], times[order], memory[order]
    if not len(times):
        return np.zeros(entries + 1, np.int64), times, memory
    ranks = times - times.min()
    if (int(ranks.max()) + 1) * entries >= LARGEST_KEY:
        ranks = np.unique(times, return_inverse=True)[1]
    # Keys of later entries are below all keys of earlier ones, so each entry begins a new minimum.
    keys = ranks - owners * (int(ranks.max()) + 1)
    least = np.minimum.accumulate(keys)
    mask = np.ones(len(keys), np.bool_)
    mask[1:] = keys[1:] < least[:-1]
    offsets = np.searchsorted(owners[mask], np.arange(entries + 1))
    return offsets, times[mask], memory[mask]


def projected(tables: Sequence[Runs], axis: int) -> Runs:
    """Multiply tables that broadcast against each other, and take the union along an axis of the product.

    Tables with one point for every entry are added up first; the others are multiplied in their order, the
    last one together with the union.
    """
    shape = np.broadcast_shapes(*[table.shape for table in tables])
    dense, others = NOTHING.reshape((1,) * len(shape)), []
    for table in tables:
        if table.is_single():
            dense = _added(dense, table)
        else:
            others.append(table)
    while len(others) > 2:
        others[:2] = [multiplied(others[0], others[1])]
    return combined([dense, *others], shape, axis)


def combined(tables: Sequence[Runs], shape: tuple[int, ...], axis: int) -> Runs:
    """Return the union along `axis`, of extent `shape[axis]`, of the product of up to three tables.

    The first table has one point for every entry if there are three. Tables have as many axes as `shape`.
    """
    from ...support.compiled import compiler

    left = (*shape[:axis], *shape[axis + 1 :])
    factors = [(table, *_walk(table.shape, axis, left)) for table in tables]
    factors += [(NOTHING, np.zeros(math.prod(left), np.int64), 0)] * (3 - len(factors))
    if compiler() is not None:
        from .run_loops import merged

        arguments: list[Any] = []
        for table, starts, step in factors:
            arguments += table.offsets, table.times, table.memory, starts, step
        arguments.append(shape[axis])
        return Runs(left, *merged(*arguments))
    return Runs(left, *_sorted(factors, shape[axis]))


def _walk(shape: tuple[int, ...], axis: int, left: tuple[int, ...]) -> tuple[Integers, int]:
    """Return a table's entry for each entry of a product without `axis`, and the step along `axis`."""
    numbers = np.arange(math.prod(shape)).reshape(shape)
    step = int(np.take(numbers, 1, axis).flat[0]) if shape[axis] > 1 else 0
    starts = np.array(
        np.broadcast_to(np.take(numbers, 0, axis), left)
    )  # writable: loops compile for one kind
    return starts.ravel(), step


def _sorted(factors: Sequence[tuple[Runs, Integers, int]], extent: int) -> tuple[Integers, ...]:
    """Return offsets, times and memory of `combined`, by sorting all sums of some entries at a time."""
    entries = len(factors[0][1])
    counts = np.ones((entries, extent), np.int64)
    for table, starts, step in factors:
        counts *= table.lengths[starts[:, None] + step * np.arange(extent)]
    sums = np.cumsum(counts.sum(axis=1))
    ends = np.searchsorted(sums, np.arange(PIECE_POINTS, sums[-1] if entries else 0, PIECE_POINTS))
    cuts = np.unique(np.concatenate([[0], ends, [entries]]))
    pieces = [
        reduced(*_sums(factors, extent, int(first), int(end)), int(end - first))
        for first, end in pairwise(cuts)
    ]
    offsets = _offsets(np.concatenate([np.zeros(0, np.int64), *[np.diff(piece[0]) for piece in pieces]]))
    times, memory = (np.concatenate([np.zeros(0, np.int64), *[piece[i] for piece in pieces]]) for i in (1, 2))
    return offsets, times, memory


def _sums(
    factors: Sequence[tuple[Runs, Integers, int]], extent: int, first: int, end: int
) -> tuple[Integers, Integers, Integers]:
    """Return the entry, the time and the memory of all sums of points of entries `first` to `end - 1`."""
    owners = np.repeat(np.arange(end - first), extent)
    values = np.tile(np.arange(extent), end - first)
    times = np.zeros(len(owners), np.int64)
    memory = np.zeros(len(owners), np.int64)
    for table, starts, step in factors:
        entry = starts[first + owners] + step * values
        lengths = table.lengths[entry]
        points = _ranges(table.offsets[entry], lengths)
        owners, values = np.repeat(owners, lengths), np.repeat(values, lengths)
        times = np.repeat(times, lengths) + table.times[points]
        memory = np.repeat(memory, lengths) + table.memory[points]
    return owners, times, memory
