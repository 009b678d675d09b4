"""The tables and messages of a pairwise problem, in one row in memory, as compiled loops read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...support.integers import Integers
from .pairwise import Costs, Pair


class PackedMessages:
    """Sweeps over a problem in compiled loops (`min_plus.compiled_loops`).

    A message is sent along each pair, from its first variable to its second. `tables` are given both ways.
    These and the messages `sent` become views of what is packed.
    """

    def __init__(
        self,
        loops: Any,
        unary: Sequence[Costs],
        tables: dict[Pair, Costs],
        sent: dict[Pair, Costs],
    ) -> None:
        domains = [len(costs) for costs in unary]
        number = {pair: place for place, pair in enumerate(tables)}
        incoming: list[list[int]] = [[] for _ in unary]
        later: list[list[int]] = [[] for _ in unary]
        earlier: list[list[int]] = [[] for _ in unary]
        for (a, b), place in number.items():
            incoming[b].append(place)
            (later if b > a else earlier)[a].append(place)
        distinct = {id(table): table for table in tables.values()}
        starts = dict(zip(distinct, _starts(table.size for table in distinct.values()), strict=False))
        table_at = [starts[id(table)] for table in tables.values()]
        packed = np.concatenate([table.ravel() for table in distinct.values()])
        for (pair, table), start in zip(tables.items(), table_at, strict=True):
            tables[pair] = packed[start : start + table.size].reshape(table.shape)
        message_at = _starts(domains[b] for _, b in number)
        self._messages = np.empty(message_at[-1])
        for pair, place in number.items():
            view = self._messages[message_at[place] : message_at[place + 1]]
            view[:] = sent[pair]
            sent[pair] = view
        chains = [max(len(before), len(after), 1) for before, after in zip(earlier, later, strict=True)]
        self._shared = (
            packed,
            np.array(table_at),
            self._messages,
            np.array(message_at),
            np.array([number[b, a] for a, b in number]),
            np.concatenate(unary),
            np.array(_starts(domains)),
            np.array(chains),
            *_lists(incoming),
        )
        count = len(domains)
        self._forwards = np.arange(count), *_lists(later)
        self._backwards = np.arange(count)[::-1].copy(), *_lists(earlier)
        self._room = np.empty(max(domains))
        self._loops = loops

    def sweep(self) -> float:
        """Update all variables in order, then all in reverse order; return what comes out on the way back."""
        self._loops.send_all(*self._forwards, *self._shared, self._room)
        return float(self._loops.send_all(*self._backwards, *self._shared, self._room))


def _starts(sizes: Iterable[int]) -> list[int]:
    """Return where each of some stretches begins, and where the last one ends."""
    return list(accumulate(sizes, initial=0))


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return where each list begins, and all their members."""
    members = [member for each in lists for member in each]
    return np.array(_starts(map(len, lists))), np.array(members, np.int64)
