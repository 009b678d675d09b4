"""Sum and minimise in compiled loops. Import this module only if numba is installed, see `compiled`.

Nothing is kept of the sums but their minima, so no table of sums is written to memory.
"""

from __future__ import annotations

from ...support.compiled import compiled
from .semiring import Table


@compiled
def least_sums(costs: Table, table: Table, least: Table) -> None:
    """Write `[b]`: the least of `costs[a] + table[a, b]` over all `a`."""
    for b in range(table.shape[1]):
        least[b] = costs[0] + table[0, b]
    for a in range(1, table.shape[0]):
        cost = costs[a]
        for b in range(table.shape[1]):
            total = cost + table[a, b]
            least[b] = total if total < least[b] else least[b]


@compiled
def least_differences(rows: Table, least: Table) -> None:
    """Write `[a, b]`: the least of `rows[a, c] - rows[b, c]` over all `c`."""
    for a in range(rows.shape[0]):
        for b in range(rows.shape[0]):
            lowest = rows[a, 0] - rows[b, 0]
            for c in range(1, rows.shape[1]):
                difference = rows[a, c] - rows[b, c]
                lowest = difference if difference < lowest else lowest
            least[a, b] = lowest


@compiled
def least_products(first: Table, second: Table, first_row: Table, second_row: Table, least: Table) -> None:
    """Write `[r, b]`: the least of `first[first_row[r], x] + second[second_row[r], x, b]` over all `x`."""
    for r in range(least.shape[0]):
        costs, table, row = first[first_row[r]], second[second_row[r]], least[r]
        for b in range(row.shape[0]):
            row[b] = costs[0] + table[0, b]
        for x in range(1, costs.shape[0]):
            cost = costs[x]
            for b in range(row.shape[0]):
                total = cost + table[x, b]
                row[b] = total if total < row[b] else row[b]
