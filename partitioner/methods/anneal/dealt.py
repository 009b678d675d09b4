"""Deal workers round, so that what follows each other lies in different groups of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest


def dealt(groups: Sequence[Sequence[int]]) -> list[int]:
    """Return all workers, in turn one of each group.

    >>> dealt([(0, 1), (2, 3), (4,)])
    [0, 2, 4, 1, 3]
    """
    return [worker for turn in zip_longest(*groups) for worker in turn if worker is not None]
