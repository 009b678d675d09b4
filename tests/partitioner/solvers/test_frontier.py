"""Frontiers against brute force, ties included, and what thinning proves."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.frontier import least_frontier
from tofu.partitioner.solvers.pair_table import PairTable


def costs(tables, assignment):
    """The time and memory of an assignment."""
    entries = [tuple(assignment[v] for v in table.scope) for table in tables]
    return (
        sum(int(table.times[entry]) for table, entry in zip(tables, entries, strict=True)),
        sum(int(table.memory[entry]) for table, entry in zip(tables, entries, strict=True)),
    )


def every_pair(domains, tables):
    return {costs(tables, assignment) for assignment in itertools.product(*map(range, domains))}


def undominated(pairs):
    """The pairs that no other one is below, in rising order of memory."""
    return sorted(
        (p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)),
        key=lambda pair: pair[1],
    )


@st.composite
def problems(draw, variables=6, domain=4, highest=6):
    """Domains and tables over up to three variables, of small integers, so that many sums are equal."""
    domains = draw(st.lists(st.integers(1, domain), min_size=1, max_size=variables))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = []
    for _ in range(draw(st.integers(0, 9))):
        scope = tuple(draw(st.permutations(range(len(domains))))[: draw(st.integers(0, 3))])
        shape = [domains[v] for v in scope]
        tables.append(
            PairTable(scope, random.integers(-2, highest, shape), random.integers(-2, highest, shape))
        )
    return domains, tables


@settings(max_examples=400)
@given(problems())
def test_the_frontier_is_that_of_all_assignments_and_each_point_has_one(problem):
    domains, tables = problem
    found = least_frontier(domains, tables)
    assert found.points.tolist() == [list(pair) for pair in undominated(every_pair(domains, tables))]
    assert found.proven
    for number, point in enumerate(found.points.tolist()):
        assignment = found.assignment(number)
        assert all(0 <= value < domain for value, domain in zip(assignment, domains, strict=True))
        assert list(costs(tables, assignment)) == point
