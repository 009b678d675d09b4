"""Segment trees over ticks, one for each worker: add bytes to a range, find the most and its first tick.

All trees lie one after the other in two lists. A tree with `leaves` leaves, a power of two, has `2 * leaves`
entries. Entry 1 is its root, and entries `2 e` and `2 e + 1` are below entry `e`. `highest` is the most in
the range of an entry, without what is added above it. `added` is what is added to all of its range.
"""

from __future__ import annotations

import numpy as np

from ....support.compiled import COMPILED, Numbers, compiled
from .lifetimes import LiveIntervals


def built(live: LiveIntervals, places: int) -> tuple[Numbers, Numbers, int]:
    """Return `highest` and `added` for the live bytes of all workers, and the number of leaves of a tree.

    There is a tree for each place. Those of places after the workers begin empty.
    """
    leaves = 1 << max(live.ticks - 1, 0).bit_length()
    highest = np.zeros((places, 2 * leaves), np.int64)
    for worker, tree in enumerate(highest[: live.workers]):
        tree[leaves : leaves + live.ticks] = live.live_bytes(worker)
        width = leaves
        while width > 1:
            tree[width // 2 : width] = tree[width : 2 * width].reshape(-1, 2).max(axis=1)
            width //= 2
    flat, added = highest.ravel(), np.zeros(highest.size, np.int64)
    return (flat, added, leaves) if COMPILED else (flat.tolist(), added.tolist(), leaves)


@compiled
def add(highest: Numbers, added: Numbers, leaves: int, tree: int, first: int, last: int, nbytes: int) -> None:
    """Add bytes to the ticks from `first` to `last` of a tree; to none if `last` is earlier."""
    if last < first or nbytes == 0:
        return
    base = 2 * leaves * tree
    left, right = first + leaves, last + leaves + 1
    while left < right:
        if left & 1:
            highest[base + left] += nbytes
            added[base + left] += nbytes
            left += 1
        if right & 1:
            right -= 1
            highest[base + right] += nbytes
            added[base + right] += nbytes
        left >>= 1
        right >>= 1
    for leaf in (first + leaves, last + leaves):
        entry = leaf >> 1
        while entry:
            below = base + 2 * entry
            most = highest[below]
            if highest[below + 1] > most:
                most = highest[below + 1]
            highest[base + entry] = most + added[base + entry]
            entry >>= 1


@compiled
def peak(highest: Numbers, leaves: int, tree: int) -> int:
    """Return the most bytes of a tree."""
    return highest[2 * leaves * tree + 1]  # type: ignore[no-any-return]


@compiled
def peak_tick(highest: Numbers, leaves: int, tree: int) -> int:
    """Return the first tick with the most bytes."""
    base, entry = 2 * leaves * tree, 1
    while entry < leaves:
        entry *= 2
        if highest[base + entry + 1] > highest[base + entry]:
            entry += 1
    return entry - leaves


@compiled
def bytes_at(highest: Numbers, added: Numbers, leaves: int, tree: int, tick: int) -> int:
    """Return the bytes at a tick."""
    base, entry = 2 * leaves * tree, tick + leaves
    found = highest[base + entry]
    while entry > 1:
        entry >>= 1
        found += added[base + entry]
    return found  # type: ignore[no-any-return]
