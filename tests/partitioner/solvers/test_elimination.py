"""Elimination against exhaustive enumeration, and its promises on large, awkward and impossible graphs."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.errors import SolverError, WidthError
from tofu.partitioner.solvers.min_plus import MIN_PLUS
from tofu.partitioner.solvers.semiring import Semiring, TableArithmetic


def value(cost_tables, assignment):
    return sum(int(f.table[tuple(assignment[v] for v in f.scope)]) for f in cost_tables)


def exhaustive(domains, cost_tables, evidence):
    ranges = [[evidence[v]] if v in evidence else range(d) for v, d in enumerate(domains)]
    return min(value(cost_tables, assignment) for assignment in itertools.product(*ranges))


@st.composite
def graphs(draw):
    domains = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    cost_tables = []
    for _ in range(draw(st.integers(0, 10))):
        arity = draw(st.integers(0, min(3, len(domains))))
        scope = tuple(draw(st.permutations(range(len(domains))))[:arity])
        cost_tables.append(CostTable(scope, random.integers(-5, 9, [domains[v] for v in scope])))
    fixed = draw(st.sets(st.integers(0, len(domains) - 1), max_size=2))
    evidence = {v: draw(st.integers(0, domains[v] - 1)) for v in sorted(fixed)}
    return domains, cost_tables, evidence


@settings(max_examples=300)
@given(graphs())
def test_matches_exhaustive_enumeration(graph):
    domains, cost_tables, evidence = graph
    solution = eliminate(domains, cost_tables, evidence=evidence)
    assert solution.optimum == exhaustive(domains, cost_tables, evidence)
    assert value(cost_tables, solution.assignment) == solution.optimum
    assert all(0 <= choice < domain for choice, domain in zip(solution.assignment, domains, strict=True))
    assert all(solution.assignment[v] == choice for v, choice in evidence.items())


def test_the_same_engine_maximises_in_another_semiring():
    random = np.random.default_rng(3)
    domains = [3, 2, 4, 3]
    cost_tables = [
        CostTable(s, random.random([domains[v] for v in s])) for s in [(0, 1), (1, 2), (2, 3), (0, 3)]
    ]
    viterbi = Semiring(np.multiply, lambda t, axis: t.max(axis=axis), lambda v: int(v.argmax()))

    def product(assignment):
        return np.prod([f.table[tuple(assignment[v] for v in f.scope)] for f in cost_tables])

    solution = eliminate(domains, cost_tables, arithmetic=TableArithmetic(viterbi))
    best = max(product(a) for a in itertools.product(*map(range, domains)))
    assert product(solution.assignment) == pytest.approx(best)
    assert solution.optimum == pytest.approx(best)


@pytest.mark.parametrize("length", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain_takes_small_tables(length):
    random = np.random.default_rng(0)
    tables = random.integers(0, 100, (length - 1, 3, 3))
    solution = eliminate([3] * length, [CostTable((i, i + 1), tables[i]) for i in range(length - 1)])
    cost = np.zeros(3, np.int64)
    for table in tables:
        cost = (cost[:, None] + table).min(axis=0)
    assert solution.optimum == cost.min()
    assert solution.largest_table == 9


def test_a_hub_with_many_leaves_stays_small():
    leaves = 2_000
    table = np.arange(12).reshape(4, 3)
    solution = eliminate([4] + [3] * leaves, [CostTable((0, i), table) for i in range(1, leaves + 1)])
    assert solution.optimum == 0
    assert solution.largest_table == 12


def test_the_largest_table_counts_the_edges_that_elimination_adds():
    side = 5
    edges = [(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)]
    edges += [(r * side + c, (r + 1) * side + c) for r in range(side - 1) for c in range(side)]
    random = np.random.default_rng(1)
    cost_tables = [CostTable(edge, random.integers(0, 9, (2, 2))) for edge in edges]
    solution = eliminate([2] * side * side, cost_tables)
    assert value(cost_tables, solution.assignment) == solution.optimum
    assert solution.largest_table >= 2 ** (side + 1)
    with pytest.raises(SolverError, match=f"limit is {solution.largest_table - 1}"):
        eliminate([2] * side * side, cost_tables, table_limit=solution.largest_table - 1)


def test_equal_costs_resolve_to_the_first_value():
    solution = eliminate(
        [3, 3, 2], [CostTable((0, 1), np.zeros((3, 3), int)), CostTable((1, 2), np.ones((3, 2), int))]
    )
    assert solution.assignment == (0, 0, 0)


def test_given_tables_are_left_alone():
    table = np.array([[1, 2], [3, 4]])
    before = table.copy()
    eliminate([2, 2], [CostTable((0, 1), table), CostTable((0, 1), table), CostTable((1, 0), table)])
    np.testing.assert_array_equal(table, before)


def test_no_variables_and_no_factors():
    assert eliminate([], []).optimum == 0
    assert eliminate([2, 1], []).assignment == (0, 0)


def test_a_dense_graph_is_refused_with_its_width_and_size():
    n = 12
    pairs = itertools.combinations(range(n), 2)
    cost_tables = [CostTable(pair, np.zeros((4, 4), int)) for pair in pairs]
    with pytest.raises(
        SolverError, match=r"joins it with 11 others into a table of 16777216 entries.*limit is 1000"
    ):
        eliminate([4] * n, cost_tables, table_limit=1000)


def test_a_graph_is_refused_before_any_table_is_combined():
    class Unused(TableArithmetic):
        def eliminate(self, parts, axis):
            raise AssertionError("combined for nothing")

    chain = [(variable, variable + 1) for variable in range(10)]
    dense = itertools.combinations(range(10, 17), 2)
    cost_tables = [CostTable(pair, np.zeros((4, 4), int)) for pair in (*chain, *dense)]
    with pytest.raises(WidthError, match="limit is 1000"):
        eliminate([4] * 17, cost_tables, arithmetic=Unused(MIN_PLUS), table_limit=1000)


@pytest.mark.parametrize(
    ("domains", "cost_tables", "evidence", "message"),
    [
        ([2, 0], [], {}, "variable 1 has no value"),
        ([2], [], {0: 2}, "evidence 2 for variable 0, whose values are 0 to 1"),
        ([2], [], {5: 0}, "evidence for variable 5, but variables are numbered 0 to 0"),
        ([2, 3], [CostTable((0, 1), np.zeros((3, 2)))], {}, r"shape \(3, 2\).*domains are \(2, 3\)"),
        ([2, 2], [CostTable((1, 1), np.zeros((2, 2)))], {}, r"variables \(1, 1\)"),
        ([2], [CostTable((1,), np.zeros(2))], {}, r"variables \(1,\)"),
    ],
)
def test_malformed_problems_are_refused(domains, cost_tables, evidence, message):
    with pytest.raises(SolverError, match=message):
        eliminate(domains, cost_tables, evidence=evidence)


def test_equal_stretches_of_a_chain_are_computed_once():
    made = []

    def counted(a, b):
        made.append(1)
        return np.add(a, b)

    random = np.random.default_rng(7)
    table = random.integers(0, 100, (4, 4))
    arithmetic = TableArithmetic(dataclasses.replace(MIN_PLUS, multiply=counted, project=None))
    length = 5_000
    cost_tables = [CostTable((v, v + 1), table) for v in range(length - 1)]
    solution = eliminate([4] * length, cost_tables, arithmetic=arithmetic)
    assert value(cost_tables, solution.assignment) == solution.optimum
    assert len(made) < 1.1 * length  # one sum of constants for each, and few of tables
    plain = eliminate(
        [4] * length, cost_tables, arithmetic=TableArithmetic(dataclasses.replace(MIN_PLUS, part=None))
    )
    assert plain == solution
