"""Costs small enough to be added in float64, of which what is proven holds for the costs given.

Nothing is lost where an entry that alone exceeds a known cost becomes just more than that: it belongs to no
better assignment. Where this is not enough, costs are counted in whole units, rounded down: a lower bound in
units is one in costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arithmetic import Table
from .elimination import Factor


def rounded(factors: Sequence[Factor], cost: int, limit: int) -> tuple[list[Factor], int]:
    """Factors whose largest entries add up to less than `limit`, and their unit.

    Entries must not be negative. For every assignment that costs less than `cost`, the new factors times
    the unit add up to no more than it costs, and to just that where the unit is 1.
    """
    largest = sum(min(int(factor.table.max()), cost + 1) for factor in factors)
    unit = largest // limit + 1
    if unit == 1 and largest == sum(int(factor.table.max()) for factor in factors):
        return list(factors), 1
    known: dict[int, Table] = {}
    for factor in factors:
        if id(factor.table) not in known:
            known[id(factor.table)] = np.minimum(factor.table, cost + 1) // unit
    return [factor._replace(table=known[id(factor.table)]) for factor in factors], unit
