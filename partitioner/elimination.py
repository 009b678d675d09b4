"""Exact optimisation over a factor graph by variable elimination.

The graph has variables with finite domains and factors: tables over a few variables each. Eliminating a
variable combines every table it occurs in and projects the variable out, which leaves one table over its
neighbours; the optimum is what remains when no variable is left, and the assignment is read back in
reverse. This is the general form of the dynamic programs of Tofu, section 5.1, and of the node, edge and
branch eliminations of TensorOpt, section 3.2.

Cost: one table per variable, of the product of its neighbours' domains at that moment. Graphs like a
chain of layers keep that product bounded, so the whole is near-linear in the number of variables.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError

Table = npt.NDArray[Any]
Scope = tuple[int, ...]

TABLE_LIMIT = 1 << 24
"""Entries of the largest table that elimination may build: 128 MiB of 64-bit costs."""


@dataclass(frozen=True, slots=True)
class Semiring:
    """How tables are combined and projected.

    `multiply` joins two broadcastable tables, `add` projects one axis of a table out, `choose` names the
    entry of a vector that `add` would keep (the first of equals).
    """

    multiply: Callable[[Table, Table], Table]
    add: Callable[[Table, int], Table]
    choose: Callable[[Table], int]


def _minimum(table: Table, axis: int) -> Table:
    return np.asarray(table.min(axis=axis))


def _first_minimum(vector: Table) -> int:
    return int(vector.argmin())


MIN_PLUS = Semiring(np.add, _minimum, _first_minimum)


@dataclass(frozen=True, slots=True)
class Factor:
    """A table `[domain of scope[0], domain of scope[1], ...]` over distinct variables."""

    scope: Scope
    table: Table


@dataclass(frozen=True, slots=True)
class Elimination:
    """The optimum, one assignment that attains it, and the entries of the largest table built."""

    optimum: Any
    assignment: tuple[int, ...]
    largest_table: int


def eliminate(
    domains: Sequence[int],
    factors: Iterable[Factor],
    *,
    evidence: Mapping[int, int] | None = None,
    semiring: Semiring = MIN_PLUS,
    table_limit: int = TABLE_LIMIT,
) -> Elimination:
    """Solve `min over assignments of the sum of factors` (or its like in another semiring) exactly.

    `domains[v]` is the number of values of variable `v`, `evidence[v]` fixes it to one of them. Variables
    without factors take value 0. The same input gives the same assignment, ties included.

    Raises PlanError where a domain is empty, a factor does not fit its variables, or a table would have
    more than `table_limit` entries.
    """
    graph = _FactorGraph(domains, evidence or {}, semiring)
    for factor in factors:
        graph.insert(factor)
    return graph.solve(table_limit)


class _FactorGraph:
    """Tables by scope: scopes ascend, hold no fixed variable, and occur once each.

    From `_connect` on, a variable's neighbours are exactly the other variables of its tables.
    """

    def __init__(self, domains: Sequence[int], evidence: Mapping[int, int], semiring: Semiring) -> None:
        for variable, domain in enumerate(domains):
            if domain < 1:
                raise PlanError(f"variable {variable} has no value to choose from")
        for variable, value in evidence.items():
            if not 0 <= variable < len(domains):
                raise PlanError(f"evidence for variable {variable}, but there are {len(domains)} variables")
            if not 0 <= value < domains[variable]:
                raise PlanError(
                    f"evidence {value} for variable {variable}, whose values are 0 to {domains[variable] - 1}"
                )
        self._domains = tuple(domains)
        self._semiring = semiring
        self._fixed = {variable: 0 for variable, domain in enumerate(domains) if domain == 1} | dict(evidence)
        self._tables: list[dict[Scope, Table]] = [{} for _ in domains]
        self._neighbours: list[set[int]] = [set() for _ in domains]
        self._constant: Table | None = None

    def insert(self, factor: Factor) -> None:
        """Add a factor from outside: fix what is fixed and sort its scope."""
        scope, table, fixed = factor.scope, factor.table, self._fixed
        known = self._domains
        expected = tuple([known[v] if 0 <= v < len(known) else -1 for v in scope])
        if table.shape != expected or len(set(scope)) != len(scope):
            raise PlanError(
                f"a factor over variables {scope} has a table of shape {table.shape}; "
                f"their domains are {expected}"
            )
        if not fixed.keys().isdisjoint(scope):
            table = np.asarray(table[tuple([fixed.get(v, slice(None)) for v in scope])])
            scope = tuple([v for v in scope if v not in fixed])
        order = tuple(sorted(scope))
        if order != scope:
            table = table.transpose([scope.index(v) for v in order])
        self._insert_sorted(order, table)

    def _insert_sorted(self, scope: Scope, table: Table) -> None:
        multiply = self._semiring.multiply
        if not scope:
            self._constant = table if self._constant is None else multiply(self._constant, table)
            return
        present = self._tables[scope[0]].get(scope)
        if present is not None:
            table = multiply(present, table)
        for variable in scope:
            self._tables[variable][scope] = table

    def solve(self, table_limit: int) -> Elimination:
        domains, add = self._domains, self._semiring.add
        sizes = self._connect()
        heap = [(size, variable) for variable, size in enumerate(sizes) if variable not in self._fixed]
        heapq.heapify(heap)
        done = [variable in self._fixed for variable in range(len(domains))]
        eliminated: list[tuple[int, Scope, Table | None]] = []
        largest = 0
        while heap:
            size, variable = heapq.heappop(heap)
            if done[variable] or size != sizes[variable]:
                continue
            done[variable] = True
            entries = size * domains[variable]
            if entries > table_limit:
                raise PlanError(self._too_large(variable, entries, table_limit))
            largest = max(largest, entries)
            scope, table = self._combine(variable)
            eliminated.append((variable, scope, table))
            for changed in self._remove(variable, sizes):
                heapq.heappush(heap, (sizes[changed], changed))
            if table is not None:
                axis = scope.index(variable)
                self._insert_sorted(scope[:axis] + scope[axis + 1 :], add(table, axis))
        optimum = 0 if self._constant is None else self._constant.item()
        return Elimination(optimum, self._read_back(eliminated), largest)

    def _connect(self) -> list[int]:
        """Fill in the neighbours and return the size of the table that eliminating each variable leaves."""
        neighbours = self._neighbours
        for variable, tables in enumerate(self._tables):
            for scope in tables:
                neighbours[variable].update(scope)
            neighbours[variable].discard(variable)
        sizes = []
        for others in neighbours:
            size = 1
            for other in others:
                size *= self._domains[other]
            sizes.append(size)
        return sizes

    def _combine(self, variable: int) -> tuple[Scope, Table | None]:
        """All tables of a variable as one, over the variable and its neighbours in ascending order."""
        domains, multiply = self._domains, self._semiring.multiply
        tables = self._tables[variable]
        scope = tuple(sorted((*self._neighbours[variable], variable)))
        combined: Table | None = None
        for part, table in tables.items():
            if len(part) != len(scope):
                table = table.reshape([domains[v] if v in part else 1 for v in scope])
            combined = table if combined is None else multiply(combined, table)
        return scope, combined

    def _remove(self, variable: int, sizes: list[int]) -> Scope:
        """Take a variable out, connect its neighbours to each other, and update their table sizes."""
        domains, neighbours = self._domains, self._neighbours
        around = neighbours[variable]
        for scope in self._tables[variable]:
            for other in scope:
                if other != variable:
                    del self._tables[other][scope]
        self._tables[variable] = {}
        for other in around:
            own = neighbours[other]
            own.discard(variable)
            sizes[other] //= domains[variable]
            if len(around) == 1:
                continue
            for third in around:
                if third != other and third not in own:
                    own.add(third)
                    sizes[other] *= domains[third]
        return tuple(around)

    def _read_back(self, eliminated: list[tuple[int, Scope, Table | None]]) -> tuple[int, ...]:
        choose = self._semiring.choose
        assignment = [self._fixed.get(variable, 0) for variable in range(len(self._domains))]
        for variable, scope, table in reversed(eliminated):
            if table is not None:
                vector = table[tuple(slice(None) if v == variable else assignment[v] for v in scope)]
                assignment[variable] = choose(vector)
        return tuple(assignment)

    def _too_large(self, variable: int, entries: int, table_limit: int) -> str:
        return (
            f"eliminating variable {variable} joins it with {len(self._neighbours[variable])} others into a "
            f"table of {entries} entries; the limit is {table_limit}. The graph is too densely connected "
            f"for exact elimination: tie repeated operations, or raise the limit"
        )
