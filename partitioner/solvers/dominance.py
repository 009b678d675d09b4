"""Remove values that no least-cost assignment needs: dead-end elimination for pairwise tables in (min, +).

Value `b` of a variable dominates value `a` if `a` costs at least as much whatever the neighbours choose:

    sum over the variable's tables of  min over the neighbour's values n of (table[a, n] - table[b, n])  >=  0

Removing `a` does not change the optimum. Values are removed variable by variable, given the remaining values
of the others, until a round removes nothing (`Dominance.prune`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .elimination import CostTable
from .semiring import Table

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """A problem without the dominated values."""

    kept: tuple[Values, ...]
    """For each variable, the values that remain, ascending."""

    cost_tables: tuple[CostTable, ...]
    """The tables over the positions of these values."""

    @property
    def domains(self) -> list[int]:
        return [len(values) for values in self.kept]

    def original(self, assignment: Sequence[int]) -> tuple[int, ...]:
        """Return an assignment of positions as the values that they stand for."""
        return tuple(values[position] for values, position in zip(self.kept, assignment, strict=True))


class Dominance:
    """Removes dominated values. Results are cached by the identity of tables, because structure repeats."""

    def __init__(self) -> None:
        self._known: dict[int, Table] = {}
        self._gaps: dict[tuple[int, int], Table] = {}
        self._undominated: dict[tuple[tuple[int, int], ...], Values] = {}
        self._selections: dict[tuple[int, int, Values], Table] = {}

    def prune(self, domains: Sequence[int], cost_tables: Sequence[CostTable]) -> Pruned:
        """Remove dominated values; of equal values the first stays. Factors must be over two variables."""
        kept: list[Values] = [tuple(range(domain)) for domain in domains]
        tables = [cost_table.table for cost_table in cost_tables]
        uses: list[list[tuple[int, int]]] = [[] for _ in domains]
        for number, cost_table in enumerate(cost_tables):
            for axis, variable in enumerate(cost_table.scope):
                uses[variable].append((number, axis))
        waiting = [v for v, values in enumerate(kept) if uses[v] and len(values) > 1]
        while waiting:
            touched: set[int] = set()
            for variable in waiting:
                positions = self._remaining([(tables[number], axis) for number, axis in uses[variable]])
                values = kept[variable]
                if len(positions) == len(values):
                    continue
                kept[variable] = tuple([values[position] for position in positions])
                for number, axis in uses[variable]:
                    tables[number] = self._select(tables[number], axis, positions)
                    touched.add(cost_tables[number].scope[1 - axis])
            waiting = [v for v in sorted(touched) if len(kept[v]) > 1]
        scopes = [cost_table.scope for cost_table in cost_tables]
        return Pruned(tuple(kept), tuple(map(CostTable, scopes, tables)))

    def _remaining(self, uses: list[tuple[Table, int]]) -> Values:
        """Return the values of a variable that none dominates, given its tables and its axis in each."""
        key = tuple([(self._identity(table), axis) for table, axis in uses])
        found = self._undominated.get(key)
        if found is None:
            gaps = sum(self._gap(table, axis) for table, axis in uses)
            found = self._undominated[key] = _undominated(np.asarray(gaps))
        return found

    def _gap(self, table: Table, axis: int) -> Table:
        """Compute `[a, b]`: the least amount by which value `a` exceeds value `b` on an axis of a table."""
        key = (self._identity(table), axis)
        found = self._gaps.get(key)
        if found is None:
            rows = np.moveaxis(table, axis, 0)
            found = self._gaps[key] = (rows[:, None] - rows[None]).min(axis=-1)
        return found

    def _select(self, table: Table, axis: int, positions: Values) -> Table:
        key = (self._identity(table), axis, positions)
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = np.take(table, positions, axis)
        return found

    def _identity(self, table: Table) -> int:
        self._known[id(table)] = table
        return id(table)


def _undominated(gaps: npt.NDArray[np.int64]) -> Values:
    """Return the values that no remaining value dominates, the first of equals among them."""
    alive = np.ones(len(gaps), np.bool_)
    for value in reversed(range(len(gaps))):
        alive[value] = False
        alive[value] = not (gaps[value, alive] >= 0).any()
    return tuple(np.flatnonzero(alive).tolist())
