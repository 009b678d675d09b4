"""Random problems with a table per pair of variables, and their optimum by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from tofu.partitioner.solvers.anytime import close_gap
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.linear_order import linear_order
from tofu.partitioner.solvers.pairwise import core


@st.composite
def pairwise_tables(draw, variables=6, domain=4):
    """Domains and cost tables over pairs, densely connected."""
    domains = draw(st.lists(st.integers(1, domain), min_size=2, max_size=variables))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cost_tables = []
    for a, b in itertools.combinations(range(len(domains)), 2):
        if random.random() < draw(st.sampled_from([0.4, 1.0])):
            scope = (a, b) if random.random() < 0.5 else (b, a)
            cost_tables.append(CostTable(scope, random.integers(0, 9, [domains[v] for v in scope])))
    return domains, cost_tables


def cost(cost_tables, assignment):
    return sum(int(f.table[tuple(assignment[v] for v in f.scope)]) for f in cost_tables)


def assignments(domains):
    return itertools.product(*map(range, domains))


def optimum(domains, cost_tables):
    return min(cost(cost_tables, assignment) for assignment in assignments(domains))


def beads(count, size=5, domain=4, seed=0):
    """Dense groups of variables in a row, each of which meets the next in two tables."""
    random = np.random.default_rng(seed)
    pairs = []
    for first in range(0, count * size, size):
        pairs += [(a, b) for b in range(first, first + size) for a in range(first, b)]
        if first:
            pairs += [(first - 2, first), (first - 1, first + 1)]
    return [domain] * (count * size), [
        CostTable(pair, random.integers(0, 1000, (domain, domain))) for pair in pairs
    ]


def ordered(domains, cost_tables):
    """The core of a problem, its variables in an order that keeps few of them open."""
    whole = core(domains, cost_tables).problem
    return whole.reordered(linear_order(whole.neighbours(), whole.domains))


def assert_closed(domains, cost_tables):
    """The gap closes from twice the optimum, by reports of costs that fall and bounds that rise."""
    best = eliminate(domains, cost_tables).optimum
    reports = []
    found = close_gap(domains, cost_tables, 2 * best, lambda cost, bound: reports.append((cost, bound)))
    assert (found.cost, found.bound) == (best, best) == reports[-1]
    assert cost(cost_tables, found.assignment) == best
    costs, bounds = zip(*reports, strict=True)
    assert list(costs) == sorted(costs, reverse=True)
    assert list(bounds) == sorted(bounds)
