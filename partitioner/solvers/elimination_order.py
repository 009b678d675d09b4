"""In which order variables are eliminated, and from which tables: from scopes alone, without a table.

    next variable    the one whose elimination leaves the smallest table, of equal ones the first
    place            the number of a scope: those that are given in their order, then those of messages. A
                     message over a scope that has a table is multiplied with it

The order depends on domains and scopes. Searches that differ in costs alone share it, such as those at
several prices, and often the steps of one recursion.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .errors import WidthError
from .semiring import Parts, Scope

KNOWN_ORDERS = 16
"""The orders that are remembered."""

KNOWN_VARIABLES = 20_000
"""Of the orders of more variables only the last is remembered, since they take much memory."""

NO_PLACE = -1
"""The place of a message over no variable."""


class Step(NamedTuple):
    """The elimination of a variable."""

    variable: int
    """The variable."""

    places: tuple[int, ...]
    """The places of the tables that it occurs in, ascending; none if it occurs in no table."""

    parts: Parts
    """The axes that these tables have in their product."""

    around: Scope
    """Its neighbours at that moment, over which the message is. They ascend."""

    message: int
    """The place of the message; `NO_PLACE` if it is over no variable."""


class EliminationOrder(NamedTuple):
    """The elimination of all variables."""

    steps: tuple[Step, ...]
    """The variables, in order."""

    scopes: tuple[Scope, ...]
    """The scope of each place."""

    largest: int
    """The number of entries of the largest table that is built."""


def elimination_order(
    domains: tuple[int, ...], scopes: tuple[Scope, ...], table_limit: int
) -> EliminationOrder:
    """Order all variables but those whose domain is 0. Scopes ascend and occur once each.

    Raises WidthError if a table would have more than `table_limit` entries.
    """
    return (_remembered if len(domains) <= KNOWN_VARIABLES else _last)(domains, scopes, table_limit)


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
        order, largest = cls(domains, scopes)._all(table_limit)
        steps, every_scope = _steps(len(domains), order, scopes)
        return EliminationOrder(steps, every_scope, largest)

    def _all(self, table_limit: int) -> tuple[list[tuple[int, Scope]], int]:
        """Return the variables, each with its neighbours, and the entries of the largest table."""
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
        return steps, largest

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


def _steps(
    variables: int, order: Sequence[tuple[int, Scope]], scopes: Sequence[Scope]
) -> tuple[tuple[Step, ...], tuple[Scope, ...]]:
    """Return the steps of an order of variables, and the scope of each place."""
    place_of = {scope: place for place, scope in enumerate(scopes)}
    places: list[list[int]] = [[] for _ in range(variables)]
    for scope, place in place_of.items():
        for variable in scope:
            places[variable].append(place)
    known: dict[Parts, Parts] = {}
    every_scope, gone = list(scopes), set[int]()
    steps: list[Step] = []
    for variable, around in order:
        present = tuple([place for place in places[variable] if place not in gone])
        gone.update(present)
        axis = bisect_left(around, variable)
        axes = {other: number + (number >= axis) for number, other in enumerate(around)}
        axes[variable] = axis
        parts = tuple([tuple([axes[v] for v in every_scope[place]]) for place in present]), axis
        message = place_of.get(around, len(every_scope)) if around else NO_PLACE
        if message == len(every_scope):
            place_of[around] = message
            every_scope.append(around)
            for other in around:
                places[other].append(message)
        steps.append(Step(variable, present, known.setdefault(parts, parts), around, message))
    return tuple(steps), tuple(every_scope)


_remembered = lru_cache(KNOWN_ORDERS)(_Ordering.order)
_last = lru_cache(1)(_Ordering.order)
