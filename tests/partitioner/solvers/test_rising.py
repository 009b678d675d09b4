"""Assignments in rising order, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from tofu.partitioner.solvers.elimination import CostTable
from tofu.partitioner.solvers.errors import WidthError
from tofu.partitioner.solvers.rising import TABLE_LIMIT, rising

from .test_elimination import graphs, value


@settings(max_examples=200)
@given(graphs())
def test_every_assignment_comes_once_and_in_order(graph):
    domains, cost_tables, _ = graph
    found = list(rising(domains, cost_tables))
    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found)
    assert all(cost == value(cost_tables, assignment) for cost, assignment in found)
    assert sorted(assignment for _, assignment in found) == list(
        itertools.product(*(range(domain) for domain in domains))
    )


def test_the_first_assignments_of_long_chains_are_found_without_the_others():
    table = np.array([[0, 3], [5, 1]])
    chain = [CostTable((number, number + 1), table) for number in range(300)]
    first = list(itertools.islice(rising([2] * 301, chain), 3))
    assert [cost for cost, _ in first] == [0, 3, 4]
    assert first[0][1] == (0,) * 301


def test_graphs_that_are_too_dense_are_refused_at_once():
    domain = round(TABLE_LIMIT**0.25) + 1
    pairs = itertools.combinations(range(4), 2)
    tables = [CostTable(pair, np.zeros((domain, domain), np.int64)) for pair in pairs]
    with pytest.raises(WidthError):
        rising([domain] * 4, tables)
