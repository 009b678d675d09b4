"""Eliminating what has few neighbours leaves the optimum, and what is left can be completed at no cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tofu.partitioner.solvers.elimination import CostTable
from tofu.partitioner.solvers.errors import SolverError
from tofu.partitioner.solvers.pairwise import core

from .problems import assignments, cost, optimum, pairwise_tables


@settings(max_examples=150)
@given(pairwise_tables())
def test_the_core_has_the_optimum_and_completes_to_it(problem):
    domains, cost_tables = problem
    found = core(domains, cost_tables)
    best = min(assignments(found.problem.domains), key=found.problem.cost)
    assert (
        found.problem.cost(best) == optimum(domains, cost_tables) == cost(cost_tables, found.complete(best))
    )
    assert all(len(others) >= 3 for others in found.problem.neighbours())


def test_a_tree_leaves_nothing():
    tables = np.random.default_rng(3).integers(0, 50, (6, 4, 4))
    cost_tables = [
        CostTable((parent, child), tables[child]) for child, parent in enumerate([0, 0, 1, 1, 2]) if child
    ]
    found = core([4] * 5, cost_tables)
    assert found.problem.domains == ()
    assert found.problem.constant == cost(cost_tables, found.complete(())) == optimum([4] * 5, cost_tables)


@given(pairwise_tables(variables=5))
def test_reordering_keeps_every_cost(problem):
    whole = core(*problem).problem
    order = list(reversed(range(len(whole.domains))))
    other = whole.reordered(order)
    for assignment in assignments(whole.domains):
        assert other.cost(assignment[::-1]) == whole.cost(assignment)


def test_costs_that_could_be_rounded_are_refused():
    with pytest.raises(SolverError, match="sums are exact only up to"):
        core([2, 2], [CostTable((0, 1), np.full((2, 2), 1 << 53))])
