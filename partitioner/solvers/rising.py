"""Enumerate assignments in rising order of cost.

    given     domains and tables, as for `elimination`
    wanted    the assignments x, the least sum of tables first, as many as the caller takes

Elimination leaves, for every variable, tables over itself and variables that come later. So in the reverse
order the entries of a variable tell what each of its values adds to the least sum that was possible before.
Best first, every state leads to an assignment of just that cost, and none is a dead end. Implemented in:
`elimination.buckets`, `rising` (best first), `_Extensions` (the values of a variable, the cheapest first).

Cost: one entry of a heap for each variable of each assignment that is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from .elimination import Buckets, CostTable, buckets

TABLE_LIMIT = 1 << 18
"""The largest number of entries of a table that is combined."""


def rising(domains: Sequence[int], cost_tables: Sequence[CostTable]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield costs and assignments, in rising order of cost; the same input gives the same order.

    Raises WidthError if a table would have more than `TABLE_LIMIT` entries, before the first is yielded.
    """
    return _best_first(_Extensions(domains, buckets(domains, cost_tables, TABLE_LIMIT)))


class _Extensions:
    """The values of variables, in the order in which they are assigned."""

    def __init__(self, domains: Sequence[int], found: Buckets) -> None:
        self.least = int(found.optimum)
        eliminated = found.eliminated[::-1]
        self.depth = len(eliminated)
        place = {variable: number for number, (variable, _) in enumerate(eliminated)}
        self._fixed = found.fixed
        self._order = [variable for variable, _ in eliminated]
        self._domains = [domains[variable] for variable in self._order]
        self._tables = [
            [
                (table, tuple([place[v] if v != variable else -1 for v in scope]))
                for scope, table in tables.items()
            ]
            for variable, tables in eliminated
        ]
        self._known: list[dict[tuple[int, ...], list[tuple[int, int]]]] = [{} for _ in eliminated]

    def after(self, values: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return what each value of the next variable adds, and the value, the cheapest first."""
        depth = len(values)
        tables, known = self._tables[depth], self._known[depth]
        key = tuple([values[p] for _, places in tables for p in places if p >= 0])
        found = known.get(key)
        if found is None:
            total = np.zeros(self._domains[depth], np.int64)
            for table, places in tables:
                total = total + table[tuple([slice(None) if p < 0 else values[p] for p in places])]
            total = total - total.min()
            order = np.argsort(total, kind="stable")
            found = known[key] = list(zip(total[order].tolist(), order.tolist(), strict=True))
        return found

    def assignment(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return the values by variable."""
        found = [value or 0 for value in self._fixed]
        for variable, value in zip(self._order, values, strict=True):
            found[variable] = value
        return tuple(found)


def _best_first(extensions: _Extensions) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Extend the cheapest state; of equal ones, the one with the most variables."""
    turn = count()
    if not extensions.depth:
        yield extensions.least, extensions.assignment(())
        return
    heap: list[tuple[int, int, int, tuple[int, ...], int]] = [(extensions.least, 0, next(turn), (), 0)]
    while heap:
        cost, left, _, values, rank = heapq.heappop(heap)
        offered = extensions.after(values)
        added, value = offered[rank]
        if rank + 1 < len(offered):
            sibling = cost - added + offered[rank + 1][0]
            heapq.heappush(heap, (sibling, left, next(turn), values, rank + 1))
        longer = (*values, value)
        if len(longer) == extensions.depth:
            yield cost, extensions.assignment(longer)
        else:
            heapq.heappush(heap, (cost, -len(longer), next(turn), longer, 0))
