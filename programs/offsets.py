"""Place buffers with known lifetimes in one arena by three heuristics, the slower ones only if they may pay.

    variables    offset[b] for every buffer b
    objective    the least arena, max over b of  offset[b] + size[b]
    constraints  births[b] > deaths[c], or deaths[b] < births[c], or the memory of b and c is disjoint

This is dynamic storage allocation, which is NP-hard. The largest sum of live sizes is a lower bound.
Implemented in: `live_sizes` (the bound), `in_order_of_time`, `largest_first`, `largest_area_first`, `place`
(the smallest one).
"""

from __future__ import annotations

from bisect import bisect_left
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..support.compiled import Patience, compiler
from ..support.integers import Integers

ALIGNMENT_BYTES = 64
ACCEPTED_WASTE = 0.02
"""The share of the lower bound that may be wasted if there are many buffers."""

FEW_BUFFERS = 512
"""Up to this number of buffers all heuristics are tried as long as any memory is wasted."""

COMPILED_BUFFERS = 1 << 11
"""From this number of buffers on, the slower heuristics are compiled if possible: loading the compiler takes
time."""

COMPILED_IN_TIME = 1 << 15
"""From this number of buffers on, the fast one is compiled as well, and for fewer if it has run for long."""

LOADING_SECONDS = 0.5
"""About how long it takes to import numba and to load a loop that was compiled before."""

_in_time = Patience(LOADING_SECONDS)

_UNLIMITED = int(np.iinfo(np.int64).max // 2)


def place(sizes: Integers, births: Integers, deaths: Integers, enough: int = 0) -> tuple[Integers, int]:
    """Return the buffers' offsets and the size of the arena that holds them, in the unit of `sizes`.

    Buffer `i` is live from tick `births[i]` to `deaths[i]`, both included. Buffers that are live at a common
    tick get disjoint memory. The time is linear in the number of buffers. As long as a heuristic wastes
    memory, a slower one is tried, whose time is multiplied by the number of buffers live at once. Of more
    than `FEW_BUFFERS`, a waste of `ACCEPTED_WASTE` is accepted. An arena of `enough` is not made smaller.
    """
    if not len(sizes):
        return np.zeros(0, np.int64), 0
    offsets, arena = in_order_of_time(sizes, births, deaths)
    waste = ACCEPTED_WASTE if len(sizes) > FEW_BUFFERS else 0
    accepted = max(live_sizes(sizes, births, deaths).max() * (1 + waste), enough)
    for slower in (largest_first, largest_area_first):
        if arena <= accepted:
            break
        others, smaller = slower(sizes, births, deaths, arena)
        if smaller < arena:
            offsets, arena = others, smaller
    return offsets, arena


def live_sizes(sizes: Integers, births: Integers, deaths: Integers) -> Integers:
    """Sum the sizes live at each tick: the largest sum is a lower bound for any arena."""
    change = np.zeros(int(deaths.max(initial=0)) + 2, np.int64)
    np.add.at(change, births, sizes)
    np.subtract.at(change, deaths + 1, sizes)
    return change.cumsum()


def in_order_of_time(sizes: Integers, births: Integers, deaths: Integers) -> tuple[Integers, int]:
    """Allocate each buffer at its birth in the smallest sufficient gap, and free it after its death."""
    first = np.lexsort((-sizes, births - deaths, births))
    last = np.argsort(deaths, kind="stable")
    loops = _compiled() if _in_time.over or len(sizes) >= COMPILED_IN_TIME else None
    if loops is not None:
        found = np.zeros(len(sizes), np.int64)
        return found, loops.place_in_time(sizes, births, deaths, first, last, found)
    return _in_time.run(_placed_in_time, sizes, births, deaths, first, last)


def _placed_in_time(
    sizes: Integers, births: Integers, deaths: Integers, first: Integers, last: Integers
) -> tuple[Integers, int]:
    """Allocate buffers in the order `first` and free them in the order `last`, in plain Python."""
    offsets = [0] * len(sizes)
    arena = 0
    order, dying = first.tolist(), iter(last.tolist())
    size_of, birth_of, death_of = sizes.tolist(), births.tolist(), deaths.tolist()
    gaps = [(0, _UNLIMITED)]  # (start, end), in order, none next to another
    next_dead = next(dying)
    for index in order:
        while death_of[next_dead] < birth_of[index]:
            _free(gaps, offsets[next_dead], offsets[next_dead] + size_of[next_dead])
            next_dead = next(dying)
        size = size_of[index]
        length, place = 2 * _UNLIMITED, -1
        for position, (start, end) in enumerate(gaps):
            if size <= end - start < length:
                length, place = end - start, position
        start, end = gaps[place]
        offsets[index] = start
        arena = max(arena, start + size)
        if length == size:
            del gaps[place]
        else:
            gaps[place] = (start + size, end)
    return np.array(offsets, np.int64), arena


def _free(gaps: list[tuple[int, int]], start: int, end: int) -> None:
    """Return `[start, end)` to the gaps and join it with its neighbours."""
    place = bisect_left(gaps, (start, end))
    if place < len(gaps) and gaps[place][0] == end:
        end = gaps.pop(place)[1]
    if place and gaps[place - 1][1] == start:
        place -= 1
        start = gaps.pop(place)[0]
    gaps.insert(place, (start, end))


def largest_first(
    sizes: Integers, births: Integers, deaths: Integers, below: int = _UNLIMITED
) -> tuple[Integers, int]:
    """Place buffers in the order of their sizes; stop if the arena has `below` bytes or more."""
    return _heaviest_first(sizes, sizes, births, deaths, below)


def largest_area_first(
    sizes: Integers, births: Integers, deaths: Integers, below: int = _UNLIMITED
) -> tuple[Integers, int]:
    """Place buffers in the order of sizes times lifetimes; stop if the arena has `below` bytes or more."""
    return _heaviest_first(sizes.astype(np.float64) * (deaths - births + 1), sizes, births, deaths, below)


def _heaviest_first(
    weights: npt.NDArray[Any], sizes: Integers, births: Integers, deaths: Integers, below: int
) -> tuple[Integers, int]:
    """Put each buffer into the smallest sufficient gap left by earlier buffers with overlapping lifetimes.

    Buffers that are live throughout come first, at the bottom, and the others by falling weights.
    """
    order = np.lexsort((births, -weights, (births > births.min()) | (deaths < deaths.max())))
    offsets = np.zeros(len(sizes), np.int64)
    loops = _compiled() if len(sizes) >= COMPILED_BUFFERS else None
    if loops is not None:
        return offsets, loops.place_heaviest(sizes, births, deaths, order, offsets, below)
    placed = np.zeros((4, len(sizes)), np.int64)  # births, deaths, starts, ends, in the order of starts
    arena = 0
    for count, index in enumerate(order.tolist()):
        size, birth, death = int(sizes[index]), int(births[index]), int(deaths[index])
        meets = (placed[0, :count] <= death) & (placed[1, :count] >= birth)
        starts, ends = placed[2, :count][meets], placed[3, :count][meets]
        gap_starts = np.zeros(len(ends) + 1, np.int64)
        np.maximum.accumulate(ends, out=gap_starts[1:])
        gaps = np.append(starts, _UNLIMITED) - gap_starts
        gaps[gaps < size] = _UNLIMITED
        start = int(gap_starts[gaps.argmin()])
        at = int(placed[2, :count].searchsorted(start))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = birth, death, start, start + size
        offsets[index] = start
        arena = max(arena, start + size)
        if arena >= below:
            break
    return offsets, arena


def _compiled() -> ModuleType | None:
    """Return the module of compiled loops; None without numba."""
    if compiler() is None:
        return None
    from . import offset_loops

    return offset_loops
