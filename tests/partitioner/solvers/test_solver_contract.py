"""The promises of every solver, against brute force; a new one is a case of `SOLVERS`.

Given pairwise integer tables a solver returns an assignment, its cost, and a bound. The cost is that of the
assignment, the bound is at most the optimum, and a solver that says it is exact finds the optimum.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tofu.partitioner.solvers.anytime import Effort, close_gap, unheard
from tofu.partitioner.solvers.dominance import Dominance
from tofu.partitioner.solvers.elimination import eliminate
from tofu.partitioner.solvers.solve import least_cost

from .problems import cost, optimum, pairwise_tables


def by_elimination(domains, cost_tables):
    solved = eliminate(domains, cost_tables)
    return solved.assignment, solved.optimum, solved.optimum


def by_dominance(domains, cost_tables):
    pruned = Dominance().prune(domains, cost_tables)
    solved = eliminate(pruned.domains, pruned.cost_tables)
    return pruned.original(solved.assignment), solved.optimum, solved.optimum


def by_least_cost(domains, cost_tables):
    solved = least_cost(domains, cost_tables)
    return solved.assignment, solved.cost, solved.lower_bound


def by_closing_the_gap(domains, cost_tables, **effort):
    most = sum(int(cost_table.table.max()) for cost_table in cost_tables)
    gap = close_gap(domains, cost_tables, most + 1, unheard, Effort(**effort))
    return gap.assignment, gap.cost, gap.bound


def with_little_effort(domains, cost_tables):
    return by_closing_the_gap(domains, cost_tables, sweep_entries=1, search_entries=0)


SOLVERS = {
    "elimination": (by_elimination, True),
    "dominance, then elimination": (by_dominance, True),
    "least cost": (by_least_cost, True),
    "closing the gap": (by_closing_the_gap, True),
    "closing the gap with little effort": (with_little_effort, False),
}
"""Every solver, and whether it is exact on problems this small."""


@pytest.mark.parametrize(("solver", "exact"), SOLVERS.values(), ids=SOLVERS)
@settings(max_examples=60)
@given(problem=pairwise_tables())
def test_costs_bounds_and_assignments_agree_with_brute_force(solver, exact, problem):
    domains, cost_tables = problem
    best = optimum(domains, cost_tables)
    assignment, stated, bound = solver(domains, cost_tables)
    assert all(0 <= value < domain for value, domain in zip(assignment, domains, strict=True))
    assert stated == cost(cost_tables, assignment)
    assert bound <= best <= stated
    if exact:
        assert bound == best == stated


@pytest.mark.parametrize(("solver", "exact"), SOLVERS.values(), ids=SOLVERS)
@settings(max_examples=20)
@given(problem=pairwise_tables())
def test_the_same_problem_has_the_same_result(solver, exact, problem):
    assert solver(*problem) == solver(*problem)
