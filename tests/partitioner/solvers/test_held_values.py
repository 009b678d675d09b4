"""Rounds that hold few variables never raise a cost, and end at the optimum where nothing must be held."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers import held_values
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.held_values import held, improved
from tofu.partitioner.solvers.pairwise import core
from tofu.partitioner.solvers.solve import NO_PROOF, least_cost

from .problems import assignments, beads, ordered, pairwise_tables


@settings(max_examples=100)
@given(pairwise_tables(), st.data())
def test_a_problem_that_is_narrow_is_solved_from_anywhere(problem, data):
    whole = core(*problem).problem
    start = [data.draw(st.integers(0, domain - 1)) for domain in whole.domains]
    assert whole.cost(improved(whole, start)) == min(map(whole.cost, assignments(whole.domains)))


def test_rounds_of_a_wide_problem_only_gain(monkeypatch):
    monkeypatch.setattr(held_values, "TABLE_LIMIT", 16)
    whole = ordered(*beads(6))
    assert held(whole.neighbours(), whole.domains, [0] * len(whole.domains))
    costs, starts = [], [(value,) * len(whole.domains) for value in range(4)]
    for start in starts:
        found = improved(whole, start)
        assert whole.cost(improved(whole, found)) <= whole.cost(found) < whole.cost(start)
        costs.append(whole.cost(found))
    best = eliminate(
        whole.domains,
        [*map(CostTable, whole.tables, whole.tables.values())]
        + [CostTable((v,), costs) for v, costs in enumerate(whole.unary)],
    )
    assert min(costs) <= 1.05 * (best.optimum + whole.constant)


def test_what_is_held_leaves_tables_within_the_limit(monkeypatch):
    monkeypatch.setattr(held_values, "TABLE_LIMIT", 64)
    whole = ordered(*beads(4))
    neighbours, times = whole.neighbours(), [0] * len(whole.domains)
    first = held(neighbours, whole.domains, times)
    tables = [*map(CostTable, whole.tables, whole.tables.values())]
    found = eliminate(whole.domains, tables, evidence=dict.fromkeys(first, 0), table_limit=64)
    assert found.largest_table <= 64
    for variable in first:
        times[variable] = 1
    assert not set(first).intersection(held(neighbours, whole.domains, times)), "others are held next"


def test_a_choice_that_is_ruled_out_is_left_though_the_problem_is_wide():
    """Where only one value of each variable can be searched, the cheapest ones may rule each other out."""
    count, domain, price = 26, 5, 1 << 30
    random = np.random.default_rng(0)
    tables = []
    for pair in itertools.combinations(range(count), 2):
        table = random.integers(0, 100, (domain, domain))
        table[random.random((domain, domain)) < 0.05] = price
        table[0, 0] = 1000
        tables.append(CostTable(pair, table))
    found = least_cost([domain] * count, tables, None, NO_PROOF)
    assert found.too_wide is not None
    assert found.cost < price, "all variables may have value 0"
