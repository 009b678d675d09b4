"""In which order variables are eliminated: from scopes alone, without a table.

    next variable    the one whose elimination leaves the smallest table, of equal ones the first

The order depends on domains and scopes. Searches that differ in costs alone share it, such as those at
several prices.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .errors import WidthError
from .semiring import Scope

KNOWN_ORDERS = 16
"""The orders that are remembered."""

KNOWN_VARIABLES = 20_000
"""Orders of more variables are not remembered, since they would take too much memory."""


class EliminationOrder(NamedTuple):
    """The elimination of all variables."""

    steps: tuple[tuple[int, Scope], ...]
    """Each with its neighbours at that moment, over which a table is left. They ascend."""

    largest: int
    """The number of entries of the largest table that is built."""


def elimination_order(
    domains: tuple[int, ...], scopes: tuple[Scope, ...], table_limit: int
) -> EliminationOrder:
    """Order all variables but those whose domain is 0. Scopes ascend and occur once each.

    Raises WidthError if a table would have more than `table_limit` entries.
    """
    known = len(domains) <= KNOWN_VARIABLES
    return (_remembered if known else _Ordering.order)(domains, scopes, table_limit)


class _Ordering:
    """The neighbours of variables and the sizes of their tables, as they are after some were eliminated."""

    def __init__(self, domains: Sequence[int], scopes: Sequence[Scope]) -> None:
        self._domains = domains
        self._neighbours: list[set[int]] = [set() for _ in domains]
        for scope in scopes:
            for variable in scope:
                self._neighbours[variable].update(scope)
        self._sizes = []
        for variable, others in enumerate(self._neighbours):
            others.discard(variable)
            size = 1
            for other in others:
                size *= domains[other]
            self._sizes.append(size)

    @classmethod
    def order(cls, domains: tuple[int, ...], scopes: tuple[Scope, ...], table_limit: int) -> EliminationOrder:
        """Eliminate all variables but those whose domain is 0."""
        return cls(domains, scopes)._all(table_limit)

    def _all(self, table_limit: int) -> EliminationOrder:
        domains, sizes, variables = self._domains, self._sizes, len(self._domains)
        done = [not domain for domain in domains]
        heap = [size * variables + variable for variable, size in enumerate(sizes) if not done[variable]]
        heapq.heapify(heap)
        steps: list[tuple[int, Scope]] = []
        largest = 0
        while heap:
            size, variable = divmod(heapq.heappop(heap), variables)
            if done[variable] or size != sizes[variable]:
                continue
            done[variable] = True
            entries = size * domains[variable]
            if entries > table_limit:
                raise WidthError(self._too_large(variable, entries, table_limit), entries)
            largest = max(largest, entries)
            around = tuple(sorted(self._neighbours[variable]))
            steps.append((variable, around))
            self._join(variable, around)
            for changed in around:
                heapq.heappush(heap, sizes[changed] * variables + changed)
        return EliminationOrder(tuple(steps), largest)

    def _join(self, variable: int, around: Scope) -> None:
        """Connect a variable's neighbours without it, and update the sizes of their tables."""
        domains, neighbours, sizes = self._domains, self._neighbours, self._sizes
        domain = domains[variable]
        for other in around:
            own = neighbours[other]
            own.discard(variable)
            sizes[other] //= domain
            for third in around:
                if third != other and third not in own:
                    own.add(third)
                    sizes[other] *= domains[third]

    def _too_large(self, variable: int, entries: int, table_limit: int) -> str:
        return (
            f"eliminating variable {variable} joins it with {len(self._neighbours[variable])} others into a "
            f"table of {entries} entries; the limit is {table_limit}. The graph is too densely connected "
            f"for exact elimination: tie repeated operations, or raise the limit"
        )


_remembered = lru_cache(KNOWN_ORDERS)(_Ordering.order)
