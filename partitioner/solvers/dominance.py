"""Remove values that no least-cost assignment needs: dead-end elimination in (min, +) and for frontiers.

Value `b` of a variable dominates value `a` if `a` costs at least as much whatever the neighbours choose:

    sum over the variable's tables of  min over the neighbours' values n of (table[a, n] - table[b, n])  >=  0

Removing `a` does not change the optimum. If costs have several coordinates, such as time and memory, this
must hold in each of them, and removing `a` does not change the frontier. Values are removed variable by
variable, given the remaining values of the others, until a round removes nothing (`Dominance.prune`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .elimination import CostTable
from .min_plus import least_differences
from .pair_table import PairTable
from .semiring import Table

Values = tuple[int, ...]
Positions = npt.NDArray[np.intp]
AnyTable = TypeVar("AnyTable", CostTable, PairTable)


@dataclass(frozen=True, slots=True)
class Pruned(Generic[AnyTable]):
    """A problem without the dominated values."""

    kept: tuple[Values, ...]
    """For each variable, the values that remain, ascending."""

    cost_tables: tuple[AnyTable, ...]
    """The tables over the positions of these values."""

    replacements: tuple[Positions, ...]
    """For each variable, and each value before, the position of the value that stays or replaces it."""

    @property
    def domains(self) -> list[int]:
        return [len(values) for values in self.kept]

    def original(self, assignment: Sequence[int]) -> tuple[int, ...]:
        """Return an assignment of positions as the values that they stand for."""
        return tuple(values[position] for values, position in zip(self.kept, assignment, strict=True))

    def replaced(self, assignment: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of values that cost at most as much as these values before."""
        return tuple(int(values[value]) for values, value in zip(self.replacements, assignment, strict=True))


class Dominance:
    """Removes dominated values. Results are cached by the identity of tables, because structure repeats."""

    def __init__(self) -> None:
        self._known: dict[int, Table] = {}
        self._gaps: dict[tuple[int, int], Table] = {}
        self._undominated: dict[tuple[tuple[tuple[int, ...], int], ...], tuple[Values, Positions]] = {}
        self._selections: dict[tuple[int, int, Values], Table] = {}

    def prune(self, domains: Sequence[int], cost_tables: Sequence[AnyTable]) -> Pruned[AnyTable]:
        """Remove dominated values; of equal values the first stays. Tables of pairs have two coordinates."""
        kept: list[Values] = [tuple(range(domain)) for domain in domains]
        replacements = [np.arange(domain) for domain in domains]
        scopes = [cost_table[0] for cost_table in cost_tables]
        tables: list[tuple[Table, ...]] = [cost_table[1:] for cost_table in cost_tables]
        uses: list[list[tuple[int, int]]] = [[] for _ in domains]
        for number, scope in enumerate(scopes):
            for axis, variable in enumerate(scope):
                uses[variable].append((number, axis))
        waiting = [v for v, values in enumerate(kept) if uses[v] and len(values) > 1]
        while waiting:
            touched: set[int] = set()
            for variable in waiting:
                positions, new = self._remaining([(tables[number], axis) for number, axis in uses[variable]])
                values = kept[variable]
                if len(positions) == len(values):
                    continue
                kept[variable] = tuple([values[position] for position in positions])
                replacements[variable] = new[replacements[variable]]
                for number, axis in uses[variable]:
                    tables[number] = tuple([self._select(table, axis, positions) for table in tables[number]])
                    touched.update(scopes[number])
                touched.discard(variable)
            waiting = [v for v in sorted(touched) if len(kept[v]) > 1]
        made = zip(cost_tables, scopes, tables, strict=True)
        smaller = tuple([type(before)(scope, *table) for before, scope, table in made])
        return Pruned(tuple(kept), smaller, tuple(replacements))

    def _remaining(self, uses: list[tuple[tuple[Table, ...], int]]) -> tuple[Values, Positions]:
        """Return what `_undominated` says of a variable, given its tables and its axis in each."""
        key = tuple([(tuple(map(self._identity, table)), axis) for table, axis in uses])
        found = self._undominated.get(key)
        if found is None:
            coordinates = zip(*[[(table, axis) for table in tables] for tables, axis in uses], strict=True)
            gaps = [np.asarray(sum(self._gap(table, axis) for table, axis in one)) for one in coordinates]
            found = self._undominated[key] = _undominated(np.minimum.reduce(gaps))
        return found

    def _gap(self, table: Table, axis: int) -> Table:
        """Compute `[a, b]`: the least amount by which value `a` exceeds value `b` on an axis of a table."""
        key = (self._identity(table), axis)
        found = self._gaps.get(key)
        if found is None:
            rows = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
            found = self._gaps[key] = least_differences(rows)
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


def _undominated(gaps: npt.NDArray[np.int64]) -> tuple[Values, Positions]:
    """Return the values that no remaining value dominates, and for every value the position that replaces it.

    Of equal values the first remains.
    """
    alive = np.ones(len(gaps), np.bool_)
    instead = np.arange(len(gaps))
    for value in reversed(range(len(gaps))):
        alive[value] = False
        dominating = alive & (gaps[value] >= 0)
        alive[value] = not dominating.any()
        if not alive[value]:
            instead[value] = dominating.argmax()
    for value in np.flatnonzero(~alive).tolist():
        instead[value] = instead[instead[value]]
    positions = np.flatnonzero(alive)
    return tuple(positions.tolist()), np.searchsorted(positions, instead)
