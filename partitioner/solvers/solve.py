"""The least cost of a factor graph, proven where it is narrow enough and bounded where it is not.

A graph that elimination cannot take within the limit is pruned of dominated values and tried once more. If
that is still too wide, costs are reweighted into a lower bound and beams and windows look for what costs
least, see `anytime`; what is returned then says how large the table would have been, what is proven, and
how much work was done does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import elimination
from .anytime import Effort, close_gap, unheard
from .dominance import Dominance
from .elimination import Factor, WidthError, eliminate
from .semiring import Arithmetic

EFFORT = Effort(sweep_entries=1 << 28, search_entries=1 << 27)
"""What one step's problem may take: some seconds."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """An assignment, what it costs, and what every assignment costs at least.

    `too_wide` is the entries of the table that elimination would have needed; None where the cost is proven
    to be the least, and so equals the bound.
    """

    cost: int
    lower_bound: int
    assignment: tuple[int, ...]
    too_wide: int | None = None

    def proven(self) -> int:
        """Return what every assignment costs at least."""
        return self.lower_bound


def least_cost(
    domains: Sequence[int], factors: Sequence[Factor], arithmetic: Arithmetic | None = None
) -> Optimum:
    """The least-cost assignment of integer factors over pairs, or a good one with a bound."""
    try:
        return _eliminated(domains, factors, arithmetic)
    except WidthError as error:
        pruned = Dominance().prune(domains, factors)
        try:
            found = _eliminated(pruned.domains, pruned.factors, None)
        except WidthError:
            found = _approached(pruned.domains, pruned.factors, error)
        return Optimum(found.cost, found.lower_bound, pruned.original(found.assignment), found.too_wide)


def _eliminated(domains: Sequence[int], factors: Sequence[Factor], arithmetic: Arithmetic | None) -> Optimum:
    solved = eliminate(domains, factors, arithmetic=arithmetic, table_limit=elimination.TABLE_LIMIT)
    return Optimum(solved.optimum, solved.optimum, solved.assignment)


def _approached(domains: Sequence[int], factors: Sequence[Factor], error: WidthError) -> Optimum:
    """A good assignment and a bound. Any assignment costs less than what the search begins with."""
    most = sum(int(factor.table.max()) for factor in factors)
    gap = close_gap(domains, factors, most + 1, unheard, EFFORT)
    assert gap.assignment is not None, "a beam within the largest cost has an assignment"
    return Optimum(gap.cost, gap.bound, gap.assignment, None if gap.bound == gap.cost else error.entries)
