"""Pruning keeps the optimum, and removes what it promises to remove."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.dominance import Dominance
from tofu.partitioner.solvers.elimination import CostTable, eliminate


@st.composite
def pairwise(draw):
    domains = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cost_tables = []
    for _ in range(draw(st.integers(0, 9))):
        scope = tuple(draw(st.permutations(range(len(domains))))[:2])
        cost_tables.append(CostTable(scope, random.integers(0, 6, [domains[v] for v in scope])))
    return domains, cost_tables


@settings(max_examples=300)
@given(pairwise())
def test_the_optimum_stays(problem):
    domains, cost_tables = problem
    pruned = Dominance().prune(domains, cost_tables)
    solved = eliminate(pruned.domains, pruned.cost_tables)
    assert solved.optimum == eliminate(domains, cost_tables).optimum
    assignment = pruned.original(solved.assignment)
    assert solved.optimum == sum(int(f.table[tuple(assignment[v] for v in f.scope)]) for f in cost_tables)


@settings(max_examples=200)
@given(pairwise(), st.integers(0, 2**32 - 1))
def test_what_replaces_an_assignment_costs_no_more(problem, seed):
    domains, cost_tables = problem
    random = np.random.default_rng(seed)
    pruned = Dominance().prune(domains, cost_tables)
    before = tuple(int(random.integers(domain)) for domain in domains)
    positions = pruned.replaced(before)
    after = pruned.original(positions)
    assert _cost(cost_tables, after) == _cost(pruned.cost_tables, positions) <= _cost(cost_tables, before)
    kept = zip(pruned.kept, before, after, strict=True)
    assert all(old == new for values, old, new in kept if old in values)


def _cost(cost_tables, assignment):
    return sum(int(f.table[tuple(assignment[v] for v in f.scope)]) for f in cost_tables)


def test_a_value_that_always_costs_more_goes_and_the_first_of_equals_stays():
    table = np.array([[1, 2], [1, 2], [3, 2], [0, 9]])
    pruned = Dominance().prune([4, 2], [CostTable((0, 1), table)])
    assert pruned.kept == ((3,), (0,))
    table = np.array([[1, 5], [1, 5], [5, 1]])
    assert Dominance().prune([3, 2], [CostTable((0, 1), table)]).kept == ((0, 2), (0, 1))


def test_several_problems_can_share_what_is_remembered():
    dominance = Dominance()
    random = np.random.default_rng(5)
    for _ in range(50):
        cost_tables = [CostTable((i, i + 1), random.integers(0, 4, (3, 3))) for i in range(4)]
        pruned = dominance.prune([3] * 5, cost_tables)
        assert (
            eliminate(pruned.domains, pruned.cost_tables).optimum == eliminate([3] * 5, cost_tables).optimum
        )
