"""In which order variables are eliminated, and from which tables: scopes alone, without a table.

    next variable    the one whose elimination leaves the smallest table, of equal ones the first

The order depends on domains and scopes. Searches that differ in costs alone share it, such as those at
several prices.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .errors import WidthError
from .semiring import Scope

KNOWN_ORDERS = 16
"""The orders that are remembered."""

KNOWN_VARIABLES = 20_000
"""Orders of more variables are not remembered, since they would take too much memory."""


class Step(NamedTuple):
    """The elimination of one variable."""

    variable: int
    """The variable."""

    around: Scope
    """Its neighbours at that moment, over which a table is left. They ascend."""

    axis: int
    """Its axis in the product of its tables, whose other axes are the neighbours."""

    tables: tuple[tuple[Scope, tuple[int, ...]], ...]
    """The scopes of its tables, with the axes of their variables in that product."""


class Order(NamedTuple):
    """The elimination of all variables."""

    steps: tuple[Step, ...]
    """The elimination of each, in their order."""

    largest: int
    """The number of entries of the largest table that is built."""


def elimination_order(domains: tuple[int, ...], scopes: tuple[Scope, ...], table_limit: int) -> Order:
    """Order all variables but those whose domain is 0. Scopes ascend and occur once each.

    Raises WidthError if a table would have more than `table_limit` entries.
    """
    known = len(domains) <= KNOWN_VARIABLES
    return (_remembered if known else _Ordering.order)(domains, scopes, table_limit)


class _Ordering:
    """The scopes, neighbours and sizes of variables, as they are after some were eliminated."""

    def __init__(self, domains: Sequence[int], scopes: Sequence[Scope]) -> None:
        self._domains = domains
        self._scopes: list[dict[Scope, None]] = [{} for _ in domains]
        self._neighbours: list[set[int]] = [set() for _ in domains]
        for scope in scopes:
            for variable in scope:
                self._scopes[variable][scope] = None
                self._neighbours[variable].update(scope)
        self._sizes = []
        for variable, others in enumerate(self._neighbours):
            others.discard(variable)
            size = 1
            for other in others:
                size *= domains[other]
            self._sizes.append(size)

    @classmethod
    def order(cls, domains: tuple[int, ...], scopes: tuple[Scope, ...], table_limit: int) -> Order:
        """Eliminate all variables but those whose domain is 0."""
        return cls(domains, scopes)._all(table_limit)

    def _all(self, table_limit: int) -> Order:
        domains, sizes, count = self._domains, self._sizes, len(self._domains)
        done = [not domain for domain in domains]
        heap = [size * count + variable for variable, size in enumerate(sizes) if not done[variable]]
        heapq.heapify(heap)
        steps: list[Step] = []
        largest = 0
        while heap:
            size, variable = divmod(heapq.heappop(heap), count)
            if done[variable] or size != sizes[variable]:
                continue
            done[variable] = True
            entries = size * domains[variable]
            if entries > table_limit:
                raise WidthError(self._too_large(variable, entries, table_limit), entries)
            largest = max(largest, entries)
            steps.append(self._step(variable))
            for changed in steps[-1].around:
                heapq.heappush(heap, sizes[changed] * count + changed)
        return Order(tuple(steps), largest)

    def _step(self, variable: int) -> Step:
        """Eliminate a variable: its tables go, and its neighbours get one."""
        around = tuple(sorted(self._neighbours[variable]))
        axis = bisect_left(around, variable)
        axes = {other: place + (place >= axis) for place, other in enumerate(around)}
        axes[variable] = axis
        own = self._scopes[variable]
        self._join(variable, around)
        for scope in own:
            for other in scope:
                if other != variable:
                    del self._scopes[other][scope]
        self._scopes[variable] = {}
        if own:
            for other in around:
                self._scopes[other].setdefault(around)
        return Step(
            variable, around, axis, tuple([(scope, tuple([axes[v] for v in scope])) for scope in own])
        )

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
