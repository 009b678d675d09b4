"""Refinement of a recursive plan by large moves, each the best of its neighbourhood, until nothing improves.

A move lets every operation and every tensor change any one of its steps, all of them at once, and finds
the best of all such plans by pruning and elimination. It contains every re-solving of one step with the
others held, whichever step that is, and everything in which different tensors change different steps.
Where that no longer improves, each may also put its steps in another order: a dimension that is split by
two steps nests in their order only. The bytes fall with every move, so this ends.
"""

from __future__ import annotations

from dataclasses import replace

from . import elimination
from .arithmetic import MIN_PLUS, Arithmetic
from .dominance import Dominance
from .elimination import WidthError, eliminate
from .network import Network
from .recursive import factor_graph, recursive
from .solution import Solution, assigned, too_wide, unbounded
from .tables import Tables


def refine(network: Network, workers: int) -> Solution:
    """The recursive plan, improved until no move improves it. Never worse than the recursive plan.

    Where a neighbourhood is too densely connected to be searched exactly, the plan so far is returned and
    says so.
    """
    plan = recursive(network, workers)
    if len(plan.factors) < 2:
        return plan
    search = _Search(network, plan.factors)
    for reorder in (False, True):
        while True:
            try:
                better = search.best_near(plan, reorder)
            except WidthError as error:
                return replace(plan, unproven=(*plan.unproven, too_wide(None, error.entries, None)))
            if better.cost_bytes >= plan.cost_bytes:
                break
            plan = better
    return plan


class _Search:
    """What successive moves share: most of a network stays as it was, and its tables with it."""

    def __init__(self, network: Network, factors: tuple[int, ...]) -> None:
        self._network = network
        self._tables = Tables(factors)
        self._dominance = Dominance()
        self._arithmetic = Arithmetic(MIN_PLUS)

    def best_near(self, plan: Solution, reorder: bool) -> Solution:
        """The best plan near this one. Raises WidthError where that needs too large a table."""
        network, tables = self._network, self._tables
        operators = [
            tables.operator_near(bound, sequence, reorder)
            for bound, sequence in zip(network.operators, plan.strategies, strict=True)
        ]
        tensors = [
            tables.tensor_near(shape, sequence, reorder)
            for shape, sequence in zip(network.shapes, plan.dimensions, strict=True)
        ]
        pruned = self._dominance.prune(*factor_graph(network, tables, operators, tensors))
        solved = eliminate(
            pruned.domains,
            pruned.factors,
            arithmetic=self._arithmetic,
            table_limit=elimination.TABLE_LIMIT,
        )
        return assigned(
            plan.factors,
            operators,
            tensors,
            pruned.original(solved.assignment),
            cost_bytes=solved.optimum,
            lower_bound_bytes=plan.lower_bound_bytes,
            unproven=unbounded(plan.unproven),
        )
