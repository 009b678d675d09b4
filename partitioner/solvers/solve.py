"""Find the least cost of a factor graph: proven if the graph is narrow enough, bounded otherwise.

    given     domains D[v], and integer tables f over pairs of variables
    wanted    x[v] in D[v] that minimises    sum over all tables of  f(x[v], x[w])
    result    an assignment, its cost, and a bound with  bound <= least sum <= cost

If elimination exceeds its limit, dominated values are pruned and it is tried once more. If the graph is still
too wide, costs are reweighted into a lower bound, and assignments of few values and windows are searched, see
`anytime`. The result then says how large the table would have been and which bound is proven. The amount of
work does not depend on the clock.

Implemented in: `elimination.eliminate`, `dominance.Dominance`, `anytime.close_gap`. Guarantees: `cost` is the
sum of the tables at the assignment, and equals the bound unless `too_wide` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import elimination
from .anytime import Effort, close_gap, unheard
from .dominance import Dominance
from .elimination import CostTable, eliminate
from .errors import WidthError
from .semiring import TableArithmetic

EFFORT = Effort(sweep_entries=1 << 28, search_entries=1 << 27, least_gain=0.1)
"""The work for a problem of all steps: some seconds."""

STEP_EFFORT = replace(EFFORT, search_entries=1 << 24)
"""The work for one step's problem, of which there are several."""

NO_PROOF = replace(EFFORT, search_entries=0)
"""The work if only an assignment is wanted."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best assignment found, with its cost and a bound."""

    cost: int
    """The cost of the assignment."""

    lower_bound: int
    """A lower bound on the cost of every assignment."""

    assignment: tuple[int, ...]
    """The value of every variable."""

    too_wide: int | None = None
    """The entries of the table that elimination would have needed; None if the cost is proven the least."""

    def proven(self) -> int:
        """Return a lower bound on the cost of every assignment."""
        return self.lower_bound


def least_cost(
    domains: Sequence[int],
    cost_tables: Sequence[CostTable],
    arithmetic: TableArithmetic | None = None,
    effort: Effort = EFFORT,
) -> Optimum:
    """Return the least-cost assignment of integer cost tables over pairs.

    If the graph is too wide, it is a good one with a bound, and `effort` limits the work.
    """
    try:
        return _eliminated(domains, cost_tables, arithmetic)
    except WidthError as error:
        pruned = Dominance().prune(domains, cost_tables)
        try:
            found = _eliminated(pruned.domains, pruned.cost_tables, None)
        except WidthError:
            found = approached(pruned.domains, pruned.cost_tables, error, effort)
        return Optimum(found.cost, found.lower_bound, pruned.original(found.assignment), found.too_wide)


def _eliminated(
    domains: Sequence[int], cost_tables: Sequence[CostTable], arithmetic: TableArithmetic | None
) -> Optimum:
    solved = eliminate(domains, cost_tables, arithmetic=arithmetic, table_limit=elimination.TABLE_LIMIT)
    return Optimum(solved.optimum, solved.optimum, solved.assignment)


def approached(
    domains: Sequence[int],
    cost_tables: Sequence[CostTable],
    error: WidthError,
    effort: Effort = EFFORT,
    known: Sequence[int] | None = None,
) -> Optimum:
    """Return a good assignment and a bound, of tables that elimination found too wide with an error.

    It costs at most as much as a `known` one. Without that, any assignment costs less than what the search
    begins with.
    """
    if known is None:
        cost = sum(int(cost_table.table.max()) for cost_table in cost_tables) + 1
    else:
        cost = sum(int(table[tuple([known[v] for v in scope])]) for scope, table in cost_tables)
    gap = close_gap(domains, cost_tables, cost, unheard, effort, known)
    assignment = known if gap.assignment is None else gap.assignment
    assert assignment is not None, "one value of each variable costs less than that"
    return Optimum(gap.cost, gap.bound, tuple(assignment), None if gap.bound == gap.cost else error.entries)
