"""Costs that fit float64 keep every better assignment, and what is proven of them holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.anytime import close_gap, rounded
from tofu.partitioner.solvers.elimination import CostTable
from tofu.partitioner.solvers.pairwise import EXACT_LIMIT

from .problems import assignments, cost, optimum, pairwise_tables


def test_small_costs_stay_as_they_are():
    cost_tables = [CostTable((0, 1), np.array([[1, 2], [3, 4]]))]
    same, unit = rounded(cost_tables, 3, 100)
    assert unit == 1
    assert same[0].table is cost_tables[0].table


@settings(max_examples=100)
@given(pairwise_tables(variables=4), st.integers(1, 40))
def test_better_assignments_keep_their_costs_or_are_bounded(problem, limit):
    domains, cost_tables = problem
    best = optimum(domains, cost_tables)
    smaller, unit = rounded(cost_tables, best + 1, limit)
    assert sum(int(cost_table.table.max()) for cost_table in smaller) < limit or not cost_tables
    for assignment in assignments(domains):
        if cost(cost_tables, assignment) == best:
            assert cost(smaller, assignment) * unit <= best
            assert unit > 1 or cost(smaller, assignment) == best
        elif unit == 1:
            assert cost(smaller, assignment) > best


def test_what_is_forbidden_may_cost_any_price():
    """Prices that forbid values do not keep a problem from being solved."""
    random = np.random.default_rng(0)
    cost_tables = [CostTable((a, b), random.integers(0, 1000, (4, 4))) for a in range(8) for b in range(a)]
    forbidden = cost_tables[0].table.copy()
    forbidden[0] += EXACT_LIMIT
    cost_tables[0] = CostTable(cost_tables[0].scope, forbidden)
    found = close_gap([4] * 8, cost_tables, 28_000, lambda cost, bound: None)
    assert found.bound == found.cost == cost(cost_tables, found.assignment)
    assert found.assignment[cost_tables[0].scope[0]] != 0


@pytest.mark.parametrize("unit", [2, 1000])
def test_bounds_in_units_hold(unit):
    random = np.random.default_rng(1)
    large = EXACT_LIMIT * unit // 32
    cost_tables = [CostTable((a, b), random.integers(0, large, (3, 3))) for a in range(7) for b in range(a)]
    best = optimum([3] * 7, cost_tables)
    reports = []
    found = close_gap([3] * 7, cost_tables, best + large, lambda cost, bound: reports.append((cost, bound)))
    assert found.bound <= best <= found.cost == cost(cost_tables, found.assignment)
    assert found.cost - found.bound < 100 * 28 * unit
    assert all(bound <= best for _, bound in reports)
