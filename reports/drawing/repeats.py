"""Stretches of a sequence that repeat at once, such as the layers of a network as they run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

LONGEST = 256
"""Stretches with more entries are not looked for."""

LEAST = 3
"""The fewest occurrences of a stretch that is reported; each begins where the one before ends."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A stretch of a sequence that is followed by copies of itself."""

    begin: int
    """Where the first occurrence begins."""

    length: int
    """The number of entries of one occurrence."""

    times: int
    """The number of occurrences."""

    @property
    def end(self) -> int:
        """Return where the last occurrence ends."""
        return self.begin + self.length * self.times


def repeats(entries: Sequence[Hashable]) -> list[Repeat]:
    """Return disjoint repeats, in order: first the one that repeats most entries, then those around it."""
    numbers: dict[Hashable, int] = {}
    tokens = np.array([numbers.setdefault(entry, len(numbers)) for entry in entries], np.int64)
    found: list[Repeat] = []
    parts = [(0, len(tokens))]
    while parts:
        begin, end = parts.pop()
        best = _longest(tokens[begin:end])
        if best is not None:
            moved = Repeat(begin + best.begin, best.length, best.times)
            found.append(moved)
            parts += [(begin, moved.begin), (moved.end, end)]
    return sorted(found, key=lambda repeat: repeat.begin)


def _longest(tokens: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Repeat | None:
    """Return the repeat that leaves out most entries if it is shown once; None if there is none."""
    best: Repeat | None = None
    saved = 0
    for length in range(1, min(LONGEST, len(tokens) // LEAST) + 1):
        same = np.concatenate([[False], tokens[length:] == tokens[:-length], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        runs = edges[1::2] - edges[::2]
        if not len(runs):
            continue
        longest = int(runs.argmax())
        times = int(runs[longest]) // length + 1
        if times >= LEAST and (times - 1) * length > saved:
            best, saved = Repeat(int(edges[2 * longest]), length, times), (times - 1) * length
    return best
