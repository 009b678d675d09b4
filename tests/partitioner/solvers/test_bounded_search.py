"""The search along a line finds what enumeration finds, within its budget and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.bounded_search import BoundedSearch, Search, StateLimitError, _cheapest
from tofu.partitioner.solvers.elimination import CostTable
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core

from .problems import assignments, pairwise_tables


def reweighted(domains, cost_tables):
    return MessagePassing(core(domains, cost_tables).problem).reweighted()


def dense(variables=6, domain=5, seed=0):
    random = np.random.default_rng(seed)
    cost_tables = [
        CostTable((a, b), random.integers(0, 99, (domain, domain)))
        for a in range(variables)
        for b in range(a)
    ]
    return reweighted([domain] * variables, cost_tables)


@settings(max_examples=100)
@given(pairwise_tables(variables=5), st.integers(0, 30))
def test_the_best_assignment_within_the_budget(drawn, budget):
    problem = reweighted(*drawn)
    best = min(map(problem.cost, assignments(problem.domains)))
    search = Search(0, len(problem.domains), budget)
    found = BoundedSearch(problem).assignment(search)
    if best > budget:
        assert found is None
        assert BoundedSearch(problem).least_cost(search) is None
    else:
        assert problem.cost(found) == best == BoundedSearch(problem).least_cost(search)


@settings(max_examples=50)
@given(pairwise_tables(variables=6), st.data())
def test_windows_add_up_to_no_more_than_the_whole(drawn, data):
    problem = reweighted(*drawn)
    end = len(problem.domains)
    middle = data.draw(st.integers(0, end))
    parts = [BoundedSearch(problem).least_cost(Search(a, b, 1e9)) for a, b in ((0, middle), (middle, end))]
    assert sum(parts) <= min(map(problem.cost, assignments(problem.domains)))


def test_a_budget_that_counts_the_rest_loses_nothing():
    problem = dense()
    best = min(map(problem.cost, assignments(problem.domains)))
    later = {v: BoundedSearch(problem).least_cost(Search(v + 1, 6, 1e9)) for v in range(6)}
    found = BoundedSearch(problem).assignment(Search(0, 6, best, rest=later.__getitem__))
    assert problem.cost(found) == best


def test_a_beam_finds_an_assignment_and_keeps_few_states():
    problem = dense(variables=7)
    beam, whole = BoundedSearch(problem), BoundedSearch(problem)
    found = beam.assignment(Search(0, 7, 1e9, beam=10))
    best = whole.assignment(Search(0, 7, 1e9))
    assert problem.cost(best) <= problem.cost(found)
    assert beam.entries < whole.entries / 10


def test_too_many_states_are_an_error():
    with pytest.raises(StateLimitError, match="more than 100 states"):
        BoundedSearch(dense()).assignment(Search(0, 6, 1e9, state_limit=100))


def test_states_that_do_not_fit_one_number_are_told_apart():
    """Twelve variables of 64 values are open at once: 72 bits."""
    domains = [64] * 13
    best = np.arange(64) * np.ones((64, 1))
    cost_tables = [CostTable((v, 12), np.array(abs(best - v), np.int64)) for v in range(12)]
    cost_tables += [
        CostTable((v, w), 1000 * (1 - np.eye(64, dtype=np.int64))) for v in range(12) for w in range(v)
    ]
    problem = reweighted(domains, cost_tables)
    found = BoundedSearch(problem).assignment(Search(0, 13, 1e6, beam=50))
    assert len(set(found[:12])) == 1


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.integers(1, 40))
def test_compiled_and_plain_selections_of_the_cheapest_are_the_same(seed, count, domain):
    loops = pytest.importorskip("tofu.partitioner.solvers.min_plus_loops", reason="numba is not installed")
    random = np.random.default_rng(seed)
    values = random.integers(0, domain, (count, 2)).astype(np.int16)
    costs = random.integers(0, 4, count).astype(float)
    selected = [_cheapest(values, (domain, domain), costs, each) for each in (None, loops)]
    assert selected[0].tolist() == selected[1].tolist()
