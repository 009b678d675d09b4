"""Look for a good assignment among the values of every variable that cost least next to a bound.

    given     a pairwise problem, marginals from message passing, and the best assignment known
    values    of every variable the `k` with the least marginals, and the one that is known, for k in `KEPT`
    wanted    the best assignment of these values, by elimination

The marginal of a value is what it costs beyond the best value of its variable, next to the messages of the
others. The values of a good assignment have small marginals, and a wide problem of few values has small
tables. More values are tried until a table would be too large. Implemented in: `of_few_values`,
`MessagePassing.marginals`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .elimination import CostTable, eliminate
from .errors import WidthError
from .pairwise import Costs, Pairwise

KEPT = (1, 2, 4, 8, 12)
"""The numbers of values of each variable that are tried."""

TABLE_LIMIT = 1 << 22
"""The largest number of entries of a table that an elimination may combine."""


def of_few_values(
    problem: Pairwise, marginals: Sequence[Costs], known: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Return the best assignment of few values of each variable, and of those that are known."""
    ranked = [costs.argsort(kind="stable") for costs in marginals]
    for count in KEPT:
        values = [ranks[:count] for ranks in ranked]
        if known is not None:
            values = [np.union1d(kept, value) for kept, value in zip(values, known, strict=True)]
        tables = [
            CostTable(pair, table[values[pair[0]][:, None], values[pair[1]]].astype(np.int64))
            for pair, table in problem.tables.items()
        ]
        tables += [
            CostTable((v,), costs[values[v]].astype(np.int64)) for v, costs in enumerate(problem.unary)
        ]
        try:
            solved = eliminate([len(kept) for kept in values], tables, table_limit=TABLE_LIMIT)
        except WidthError:
            break
        known = tuple(int(kept[place]) for kept, place in zip(values, solved.assignment, strict=True))
    assert known is not None, "one value of each variable is an assignment"
    return known
