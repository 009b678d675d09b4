"""What every solver promises, against brute force; a new one is a case of `SOLVERS`.

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

from .problems import cost, optimum, pairwise_factors


def by_elimination(domains, factors):
    solved = eliminate(domains, factors)
    return solved.assignment, solved.optimum, solved.optimum


def by_dominance(domains, factors):
    pruned = Dominance().prune(domains, factors)
    solved = eliminate(pruned.domains, pruned.factors)
    return pruned.original(solved.assignment), solved.optimum, solved.optimum


def by_least_cost(domains, factors):
    solved = least_cost(domains, factors)
    return solved.assignment, solved.cost, solved.lower_bound


def by_closing_the_gap(domains, factors, **effort):
    most = sum(int(factor.table.max()) for factor in factors)
    gap = close_gap(domains, factors, most + 1, unheard, Effort(**effort))
    return gap.assignment, gap.cost, gap.bound


def with_little_effort(domains, factors):
    return by_closing_the_gap(domains, factors, sweep_entries=1, search_entries=0)


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
@given(problem=pairwise_factors())
def test_costs_bounds_and_assignments_agree_with_brute_force(solver, exact, problem):
    domains, factors = problem
    best = optimum(domains, factors)
    assignment, stated, bound = solver(domains, factors)
    assert all(0 <= value < domain for value, domain in zip(assignment, domains, strict=True))
    assert stated == cost(factors, assignment)
    assert bound <= best <= stated
    if exact:
        assert bound == best == stated


@pytest.mark.parametrize(("solver", "exact"), SOLVERS.values(), ids=SOLVERS)
@settings(max_examples=20)
@given(problem=pairwise_factors())
def test_the_same_problem_has_the_same_result(solver, exact, problem):
    assert solver(*problem) == solver(*problem)
