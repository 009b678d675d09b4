"""Exact optimisation over a factor graph by variable elimination.

The graph has variables with finite domains and factors: tables over a few variables each. Eliminating a
variable combines every table it occurs in and projects the variable out, which leaves one table over its
neighbours; the optimum is what remains when no variable is left, and the assignment is read back in
reverse. This is the general form of the dynamic programs of Tofu, section 5.1, and of the node, edge and
branch eliminations of TensorOpt, section 3.2.

Cost: one table per variable, of the product of its neighbours' domains at that moment. Graphs like a
chain of layers keep that product bounded, so the whole is near-linear in the number of variables. Where a
graph repeats itself, equal parts are combined once: tables are compared by identity, so factors that
share one array are recognised, and so is whatever follows from them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError

Table = npt.NDArray[Any]
Scope = tuple[int, ...]

TABLE_LIMIT = 1 << 24
"""Entries of the largest table that elimination may combine; what it leaves is smaller by one domain."""

PIECE_ENTRIES = 1 << 16
"""Larger tables are combined in pieces of about this many entries, which stay in a core's cache."""


class WidthError(PlanError):
    """The graph is too densely connected to be eliminated: a table would need so many `entries`."""

    def __init__(self, message: str, entries: int) -> None:
        super().__init__(message)
        self.entries = entries


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


class Arithmetic:
    """Table operations of a semiring that remember their results by the identity of their arguments.

    Arguments are kept, so that no identity is given to another table as long as this lives. One of these
    can serve several eliminations, which then pay only for what differs between them.
    """

    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self._kept: dict[int, Table] = {}
        self._selected: dict[tuple[int, tuple[int | None, ...], Scope], Table] = {}
        self._products: dict[tuple[int, int], Table] = {}
        self._eliminated: dict[tuple[tuple[tuple[int, tuple[int, ...]], ...], int], Table] = {}

    def select(self, table: Table, values: tuple[int | None, ...], order: Scope) -> Table:
        """`table` at the `values` that are not None, the other axes in this order."""
        key = (self._keep(table), values, order)
        found = self._selected.get(key)
        if found is None:
            part = np.asarray(table[tuple([slice(None) if v is None else v for v in values])])
            found = self._selected[key] = part.transpose(order)
        return found

    def multiply(self, a: Table, b: Table) -> Table:
        """The product of two tables of the same shape."""
        key = (self._keep(a), self._keep(b))
        found = self._products.get(key)
        if found is None:
            found = self._products[key] = self.semiring.multiply(a, b)
        return found

    def eliminate(self, parts: Sequence[tuple[Table, tuple[int, ...]]], axis: int) -> Table:
        """The product of tables, each reshaped to broadcast against the others, without one of its axes."""
        key = (tuple([(self._keep(table), shape) for table, shape in parts]), axis)
        found = self._eliminated.get(key)
        if found is None:
            ascending = sorted(parts, key=lambda part: part[0].size)
            found = self._project([table.reshape(shape) for table, shape in ascending], axis, 0)
            self._eliminated[key] = found
        return found

    def _project(self, tables: list[Table], axis: int, split: int) -> Table:
        """Piece by piece along `split` and later axes, so that a piece of the product stays in the cache."""
        shape = np.broadcast_shapes(*[table.shape for table in tables])
        if split == axis:
            split += 1
        if math.prod(shape) > PIECE_ENTRIES and split < len(shape):
            pieces = [
                self._project([_slice(table, split, i) for table in tables], axis, split + 1)
                for i in range(shape[split])
            ]
            return np.concatenate(pieces, axis=split - (split > axis))
        product = tables[0]
        for table in tables[1:]:
            product = self.semiring.multiply(product, table)
        return self.semiring.add(product, axis)

    def _keep(self, table: Table) -> int:
        identity = id(table)
        self._kept[identity] = table
        return identity


def _slice(table: Table, axis: int, position: int) -> Table:
    """One position of an axis that stays; all of it where the table is the same along it."""
    if table.shape[axis] == 1:
        return table
    return np.asarray(table[(slice(None),) * axis + (slice(position, position + 1),)])


def eliminate(
    domains: Sequence[int],
    factors: Iterable[Factor],
    *,
    evidence: Mapping[int, int] | None = None,
    arithmetic: Arithmetic | None = None,
    table_limit: int = TABLE_LIMIT,
) -> Elimination:
    """Solve `min over assignments of the sum of factors` (or its like in another semiring) exactly.

    Without `arithmetic` the semiring is (min, +).

    `domains[v]` is the number of values of variable `v`, `evidence[v]` fixes it to one of them. Variables
    without factors take value 0. The same input gives the same assignment, ties included.

    Raises PlanError where a domain is empty or a factor does not fit its variables; WidthError where a
    table would have more than `table_limit` entries.
    """
    graph = _FactorGraph(domains, evidence or {}, arithmetic or Arithmetic(MIN_PLUS))
    for factor in factors:
        graph.insert(factor)
    return graph.solve(table_limit)


class _FactorGraph:
    """Tables by scope: scopes ascend, hold no fixed variable, and occur once each.

    From `_connect` on, a variable's neighbours are exactly the other variables of its tables.
    """

    def __init__(self, domains: Sequence[int], evidence: Mapping[int, int], arithmetic: Arithmetic) -> None:
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
        self._arithmetic = arithmetic
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
        values = tuple([fixed.get(v) for v in scope])
        if values == (None, None) and scope[0] < scope[1]:
            self._insert_sorted(scope, table)
            return
        free = tuple([v for v, value in zip(scope, values, strict=True) if value is None])
        order = tuple(sorted(free))
        if order != scope:
            table = self._arithmetic.select(table, values, tuple([free.index(v) for v in order]))
        self._insert_sorted(order, table)

    def _insert_sorted(self, scope: Scope, table: Table) -> None:
        if not scope:
            constant = self._constant
            self._constant = (
                table if constant is None else self._arithmetic.semiring.multiply(constant, table)
            )
            return
        present = self._tables[scope[0]].get(scope)
        if present is not None:
            table = self._arithmetic.multiply(present, table)
        for variable in scope:
            self._tables[variable][scope] = table

    def solve(self, table_limit: int) -> Elimination:
        domains = self._domains
        sizes = self._connect()
        heap = [(size, variable) for variable, size in enumerate(sizes) if variable not in self._fixed]
        heapq.heapify(heap)
        done = [variable in self._fixed for variable in range(len(domains))]
        eliminated: list[tuple[int, dict[Scope, Table]]] = []
        largest = 0
        while heap:
            size, variable = heapq.heappop(heap)
            if done[variable] or size != sizes[variable]:
                continue
            done[variable] = True
            entries = size * domains[variable]
            if entries > table_limit:
                raise WidthError(self._too_large(variable, entries, table_limit), entries)
            largest = max(largest, entries)
            tables = self._tables[variable]
            eliminated.append((variable, tables))
            message = self._message(variable, tables) if tables else None
            for changed in self._remove(variable, sizes):
                heapq.heappush(heap, (sizes[changed], changed))
            if message is not None:
                self._insert_sorted(*message)
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

    def _message(self, variable: int, tables: Mapping[Scope, Table]) -> tuple[Scope, Table]:
        """What eliminating a variable from some tables leaves: one over the other variables, ascending."""
        domains = self._domains
        scope = tuple(sorted(set().union(*tables)))
        parts = [
            (table, tuple([domains[v] if v in part else 1 for v in scope])) for part, table in tables.items()
        ]
        axis = scope.index(variable)
        return scope[:axis] + scope[axis + 1 :], self._arithmetic.eliminate(parts, axis)

    def _remove(self, variable: int, sizes: list[int]) -> Scope:
        """Take a variable out, connect its neighbours, and update their table sizes."""
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
            for third in around:
                if third != other and third not in own:
                    own.add(third)
                    sizes[other] *= domains[third]
        return tuple(around)

    def _read_back(self, eliminated: list[tuple[int, dict[Scope, Table]]]) -> tuple[int, ...]:
        semiring = self._arithmetic.semiring
        assignment = [self._fixed.get(variable, 0) for variable in range(len(self._domains))]
        for variable, tables in reversed(eliminated):
            vector: Table | None = None
            for scope, table in tables.items():
                part = table[tuple([slice(None) if v == variable else assignment[v] for v in scope])]
                vector = part if vector is None else semiring.multiply(vector, part)
            if vector is not None:
                assignment[variable] = semiring.choose(vector)
        return tuple(assignment)

    def _too_large(self, variable: int, entries: int, table_limit: int) -> str:
        return (
            f"eliminating variable {variable} joins it with {len(self._neighbours[variable])} others into a "
            f"table of {entries} entries; the limit is {table_limit}. The graph is too densely connected "
            f"for exact elimination: tie repeated operations, or raise the limit"
        )
