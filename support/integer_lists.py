"""Lists of integers of different lengths as two arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .integers import Integers


@dataclass(frozen=True, slots=True, eq=False)
class IntegerLists:
    """Lists of integers of different lengths, one after the other."""

    firsts: Integers
    """Where each list begins, and where the last one ends: `[rows + 1]`."""

    entries: Integers
    """The integers of all lists."""

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> IntegerLists:
        """Join lists."""
        known = [np.asarray(each, np.int64) for each in lists]
        firsts = np.cumsum([0, *map(len, known)], dtype=np.int64)
        return cls(firsts, np.concatenate([np.zeros(0, np.int64), *known]))

    @classmethod
    def grouped(cls, keys: Integers, entries: Integers, rows: int) -> IntegerLists:
        """List the entries of each key from 0 to `rows`, in their order."""
        order = np.argsort(keys, kind="stable")
        firsts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=rows))]).astype(np.int64)
        return cls(firsts, entries[order])

    def __len__(self) -> int:
        return len(self.firsts) - 1

    def __getitem__(self, row: int) -> Integers:
        return self.entries[self.firsts[row] : self.firsts[row + 1]]

    @property
    def row_of_entries(self) -> Integers:
        """Return the number of the list of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.firsts))
