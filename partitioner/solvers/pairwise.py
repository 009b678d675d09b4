"""Minimisation problems with a cost per value and a table per pair of variables, and their cores.

    variables    x[v] in 0 .. domains[v] - 1
    objective    constant + sum over v of unary[v][x[v]] + sum over pairs a < b of tables[a, b][x[a], x[b]]

A core is the problem that is left after every variable with at most two neighbours is eliminated. Its least
cost is that of the whole problem. Costs are integers held in float64, exact below 2**53, so sums and
differences here are never rounded. Implemented in: `Pairwise`, `core` (elimination, and the way back).

Assumes: the sum of the largest entries of all tables is below 2**53 (`anytime.rounded` sees to it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .elimination import CostTable
from .errors import SolverError
from .min_plus import MIN_PLUS
from .semiring import Scope, Table, TableArithmetic

Costs = npt.NDArray[np.float64]
Pair = tuple[int, int]

EXACT_LIMIT = 1 << 52
"""The sum of all tables' largest entries must stay below this, so that no float64 is rounded."""


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Minimise `constant + sum of unary[v][value] + sum of tables[a, b][value of a, value of b]`."""

    domains: tuple[int, ...]
    """The number of values of each variable."""

    constant: float
    """The part of the cost that no choice changes."""

    unary: tuple[Costs, ...]
    """For each variable, the cost of each value, `[values]`."""

    tables: Mapping[Pair, Costs]
    """For each pair of variables `a < b`, the cost of each pair of values, `[values of a, values of b]`."""

    def neighbours(self) -> list[list[int]]:
        """Return the variables that each variable shares a table with, ascending."""
        found: list[list[int]] = [[] for _ in self.domains]
        for a, b in self.tables:
            found[a].append(b)
            found[b].append(a)
        return [sorted(others) for others in found]

    def reordered(self, order: Sequence[int]) -> Pairwise:
        """Return the same problem with variable `order[i]` as variable `i`."""
        place = {variable: position for position, variable in enumerate(order)}
        ascending = {(a, b): table for (a, b), table in self.tables.items() if place[a] < place[b]}
        others = {pair: table for pair, table in self.tables.items() if pair not in ascending}
        tables = {(place[a], place[b]): t for (a, b), t in (ascending | transposed(others)).items()}
        return Pairwise(
            tuple(self.domains[v] for v in order),
            self.constant,
            tuple(self.unary[v] for v in order),
            dict(sorted(tables.items())),
        )

    def cost(self, assignment: Sequence[int]) -> int:
        """Compute the cost of an assignment."""
        return int(self.constant + total(self.unary, self.tables, assignment))


def total(unary: Sequence[Costs], tables: Mapping[Pair, Costs], assignment: Sequence[int]) -> float:
    """Add up the costs of an assignment's values and pairs of values."""
    single = sum(float(costs[value]) for costs, value in zip(unary, assignment, strict=True))
    return single + sum(float(table[assignment[a], assignment[b]]) for (a, b), table in tables.items())


def transposed(tables: Mapping[Pair, Costs]) -> dict[Pair, Costs]:
    """Transpose tables `[a, b]` to `[b, a]`; tables that share one array share one again."""
    known: dict[int, Costs] = {}
    for table in tables.values():
        if id(table) not in known:
            known[id(table)] = np.ascontiguousarray(table.T)
    return {(b, a): known[id(table)] for (a, b), table in tables.items()}


@dataclass(frozen=True, slots=True)
class Core:
    """A problem whose variables all have at least three neighbours, and the way back to the whole problem."""

    problem: Pairwise
    """The problem."""

    variables: tuple[int, ...]
    """Its variables, as numbers of variables of the whole problem."""

    complete: Callable[[Sequence[int]], tuple[int, ...]]
    """Extends an assignment of the core to all variables."""


def core(domains: Sequence[int], cost_tables: Sequence[CostTable]) -> Core:
    """Eliminate variables with at most two neighbours, one after the other, and return the rest.

    The optimum stays the same. `complete` extends an assignment of the core to all variables at the same
    cost. Factors are over two variables. Raises SolverError if costs are too large to be added exactly.
    """
    largest = sum(int(np.abs(cost_table.table).max()) for cost_table in cost_tables)
    if largest >= EXACT_LIMIT:
        raise SolverError(f"costs may add up to {largest}, but sums are exact only up to {EXACT_LIMIT}")
    reduction = _Reduction(domains)
    for cost_table in cost_tables:
        a, b = cost_table.scope
        reduction.insert(a, b, cost_table.table)
    return reduction.run()


class _Reduction:
    """Keeps eliminated variables with their tables `[own value, neighbour's value]` to read them back."""

    def __init__(self, domains: Sequence[int]) -> None:
        self._domains = domains
        self._arithmetic = TableArithmetic(replace(MIN_PLUS, part=None))
        self._unary: list[Table | None] = [None] * len(domains)
        self._tables: list[dict[int, Table]] = [{} for _ in domains]
        self._constant = 0
        self._eliminated: list[tuple[int, Table | None, dict[int, Table]]] = []

    def insert(self, a: int, b: int, table: Table) -> None:
        present = self._tables[a].get(b)
        if present is not None:
            table = self._arithmetic.multiply(present, table)
        self._tables[a][b] = table
        self._tables[b][a] = self._arithmetic.select(table, (None, None), (1, 0))

    def run(self) -> Core:
        waiting = sorted(range(len(self._domains)), reverse=True)
        gone = [False] * len(self._domains)
        while waiting:
            variable = waiting.pop()
            if gone[variable] or (len(self._tables[variable]) > 2 and self._domains[variable] > 1):
                continue
            gone[variable] = True
            waiting.extend(sorted(self._tables[variable], reverse=True))
            self._eliminate(variable)
        left = [variable for variable, done in enumerate(gone) if not done]
        place = {variable: position for position, variable in enumerate(left)}
        known: dict[int, Costs] = {}
        problem = Pairwise(
            tuple(self._domains[v] for v in left),
            float(self._constant),
            tuple(self._floats(self._unary[v], self._domains[v], known) for v in left),
            {
                (place[a], place[b]): self._floats(table, 0, known)
                for a in left
                for b, table in sorted(self._tables[a].items())
                if a < b
            },
        )
        return Core(
            problem, tuple(left), lambda assignment: self._complete(dict(zip(left, assignment, strict=True)))
        )

    def _eliminate(self, variable: int) -> None:
        own, tables = self._unary[variable], self._tables[variable]
        self._tables[variable] = {}
        self._eliminated.append((variable, own, tables))
        for other in tables:
            del self._tables[other][variable]
        if self._domains[variable] == 1:
            self._constant += 0 if own is None else int(own[0])
            for other, table in tables.items():
                self._add(other, self._arithmetic.select(table, (0, None), (0,)))
            return
        axes: list[Scope] = [] if own is None else [(0,)]
        axes += [(0, 1 + axis) for axis in range(len(tables))]
        if not axes:
            return
        combined = [*([] if own is None else [own]), *tables.values()]
        message, _ = self._arithmetic.eliminate(combined, (tuple(axes), 0))
        match tuple(tables):
            case ():
                self._constant += int(message)
            case (other,):
                self._add(other, message)
            case (first, second):
                self.insert(first, second, message)

    def _add(self, variable: int, costs: Table) -> None:
        present = self._unary[variable]
        self._unary[variable] = costs if present is None else self._arithmetic.multiply(present, costs)

    def _floats(self, table: Table | None, extent: int, known: dict[int, Costs]) -> Costs:
        if table is None:
            return np.zeros(extent)
        if id(table) not in known:
            known[id(table)] = np.ascontiguousarray(table, np.float64)
        return known[id(table)]

    def _complete(self, assignment: dict[int, int]) -> tuple[int, ...]:
        for variable, own, tables in reversed(self._eliminated):
            costs = np.zeros(self._domains[variable], np.int64) if own is None else own
            for other, table in tables.items():
                costs = costs + table[:, assignment[other]]
            assignment[variable] = int(costs.argmin())
        return tuple(assignment[variable] for variable in range(len(self._domains)))
