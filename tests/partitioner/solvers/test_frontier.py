"""Frontiers against brute force, ties included; laws; what thinning states is true; limits; equal layers."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers import frontier, frontier_semiring, runs, supported
from tofu.partitioner.solvers.dominance import Dominance
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.errors import SolverError, WidthError
from tofu.partitioner.solvers.frontier import least_frontier
from tofu.partitioner.solvers.pair_table import PairTable
from tofu.partitioner.solvers.supported import split_widest, supports
from tofu.support import compiled as support


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
    found = [p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)]
    return [list(pair) for pair in sorted(found, key=lambda pair: pair[1])]


def is_above(pair, staircase):
    return any(corner[0] <= pair[0] and corner[1] <= pair[1] for corner in staircase)


@st.composite
def problems(draw, highest=6, most_tables=9):
    """Domains and tables over up to three variables; if integers are small, many sums are equal."""
    domains = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = []
    for _ in range(draw(st.integers(0, most_tables))):
        scope = tuple(draw(st.permutations(range(len(domains))))[: draw(st.integers(0, 3))])
        shape = [domains[v] for v in scope]
        tables.append(PairTable(scope, *map(np.asarray, random.integers(-2, highest, (2, *shape)))))
    return domains, tables


def chain(length, values, seed=0, distinct=None):
    """Variables in a row that are faster the more memory they take, and times between neighbours."""
    random = np.random.default_rng(seed)
    layers = []
    for _ in range(distinct or length):
        memory = np.sort(random.integers(0, 1000, values))
        times = np.sort(random.integers(0, 1000, values))[::-1]
        layers.append((times, memory, random.integers(0, 300, (values, values))))
    free = np.zeros((values, values), np.int64)
    tables = [PairTable((v,), *layers[v % len(layers)][:2]) for v in range(length)]
    tables += [PairTable((v, v + 1), layers[v % len(layers)][2], free) for v in range(length - 1)]
    return [values] * length, tables


@settings(max_examples=400)
@given(problems())
def test_the_frontier_is_that_of_all_assignments_and_each_point_has_one(problem):
    domains, tables = problem
    found = least_frontier(domains, tables)
    assert found.points.tolist() == undominated(every_pair(domains, tables))
    assert found.proven
    for number, point in enumerate(found.points.tolist()):
        assignment = found.assignment(number)
        assert all(0 <= value < domain for value, domain in zip(assignment, domains, strict=True))
        assert list(costs(tables, assignment)) == point


@settings(max_examples=300)
@given(problems(highest=1000, most_tables=14), st.integers(3, 8))
def test_thinned_points_are_real_and_no_assignment_is_below_the_lower_staircase(problem, limit):
    domains, tables = problem
    found = least_frontier(domains, tables, points_limit=limit)
    pairs = every_pair(domains, tables)
    best = undominated(pairs)
    for number, point in enumerate(found.points.tolist()):
        assert list(costs(tables, found.assignment(number))) == point
    assert found.points.tolist() == undominated({tuple(point) for point in found.points.tolist()})
    assert all(is_above(pair, found.lower) for pair in pairs)
    assert all(is_above(corner, found.lower) for corner in found.points.tolist())
    assert (found.points[0, 1], found.points[-1, 0]) == (best[0][1], best[-1][0])
    assert not found.proven or found.points.tolist() == best


def test_large_sums_over_many_values_are_read_back():
    domains, tables = chain(4, 81)
    large = [PairTable(scope, times << 46, memory << 46) for scope, times, memory in tables]
    found = least_frontier(domains, large, points_limit=16)
    assert [found.points[0, 1], found.points[-1, 0]] == [
        sum(int(t.memory.min()) for t in large),
        eliminate(domains, [CostTable(t.scope, t.times) for t in large]).optimum,
    ]
    for number, point in enumerate(found.points.tolist()):
        assert list(costs(large, found.assignment(number))) == point


def test_thinning_a_chain_states_a_gap_that_closes_with_more_points():
    domains, tables = chain(12, 6)
    exact = least_frontier(domains, tables)
    assert exact.proven
    gaps = []
    for limit in (4, 16, len(exact.points)):
        found = least_frontier(domains, tables, points_limit=limit)
        assert all(is_above(point, found.lower) for point in exact.points.tolist())
        assert all(is_above(point, exact.points) for point in found.points.tolist())
        places = np.searchsorted(found.points[:, 1], exact.points[:, 1], side="right") - 1
        upper = found.points[places, 0]
        lower = found.lower[np.searchsorted(found.lower[:, 1], exact.points[:, 1], side="right") - 1, 0]
        gaps.append(int((upper - lower).sum()))
        assert found.proven == (gaps[-1] == 0)
    assert gaps[0] > gaps[1] > gaps[2] == 0


@settings(max_examples=100)
@given(problems(), st.integers(0, 20), st.integers(0, 20))
def test_limits_cut_the_frontier(problem, time_limit, memory_limit):
    domains, tables = problem
    found = least_frontier(domains, tables, time_limit=time_limit, memory_limit=memory_limit)
    assert found.points.tolist() == [
        [time, memory]
        for time, memory in undominated(every_pair(domains, tables))
        if time <= time_limit and memory <= memory_limit
    ]
    for number, point in enumerate(found.points.tolist()):
        assert list(costs(tables, found.assignment(number))) == point


@settings(max_examples=100)
@given(problems(), st.integers(1, 50))
def test_scaling_times_scales_the_frontier(problem, factor):
    domains, tables = problem
    scaled = [table._replace(times=table.times * factor) for table in tables]
    expected = least_frontier(domains, tables).points * [factor, 1]
    assert least_frontier(domains, scaled).points.tolist() == expected.tolist()


@settings(max_examples=100)
@given(problems())
def test_more_values_never_raise_the_frontier(problem):
    domains, tables = problem
    fewer = [max(domain - 1, 1) for domain in domains]
    parts = [
        PairTable(t.scope, *(part[tuple(slice(fewer[v]) for v in t.scope)] for part in (t.times, t.memory)))
        for t in tables
    ]
    whole = least_frontier(domains, tables).points.tolist()
    assert all(is_above(point, whole) for point in least_frontier(fewer, parts).points.tolist())


@settings(max_examples=100)
@given(problems())
def test_the_ends_are_the_least_time_and_the_least_memory(problem):
    domains, tables = problem
    points = least_frontier(domains, tables).points
    times = eliminate(domains, [CostTable(t.scope, t.times) for t in tables])
    memory = eliminate(domains, [CostTable(t.scope, t.memory) for t in tables])
    assert (points[-1, 0], points[0, 1]) == (times.optimum, memory.optimum)


@settings(max_examples=100)
@given(problems())
def test_dominated_values_are_not_needed(problem):
    domains, tables = problem
    pruned = Dominance().prune(domains, tables)
    kept = every_pair(pruned.domains, pruned.cost_tables)
    assert undominated(kept) == undominated(every_pair(domains, tables))


def test_a_value_that_is_worse_in_one_coordinate_alone_stays():
    both = PairTable((0,), np.array([1, 2, 2]), np.array([2, 1, 2]))
    assert Dominance().prune([3], [both]).kept == ((0, 1),)


@settings(max_examples=100)
@given(problems(highest=100), st.integers(2, 9))
def test_no_assignment_is_below_a_line(problem, lines):
    domains, tables = problem
    found = supports(domains, tables, lines, 1 << 20)
    assert len(found.lines) <= lines
    for time, memory in every_pair(domains, tables):
        assert all(a * time + b * memory >= least for a, b, least in found.lines)
        assert found.least_times(np.array([memory]))[0] <= time
    for point, assignment in found.assignments.items():
        assert costs(tables, assignment) == point


def test_the_widest_gaps_are_split_first_and_tiny_ones_are_not():
    """The support of a circle is known for every direction, so every sum finds another point."""
    asked = []

    def support(time_weight, memory_weight):
        asked.append((time_weight, memory_weight))
        length = np.hypot(time_weight, memory_weight)
        return int(1e9 * (2 - time_weight / length)), int(1e9 * (2 - memory_weight / length))

    split_widest(support, 1_000)
    points = sorted({support(*weights) for weights in tuple(asked)})
    gaps = [(b[0] - a[0]) / a[0] * (a[1] - b[1]) / b[1] for a, b in pairwise(points)]
    assert asked[:2] == [(1, 0), (0, 1)]
    assert 4 < len(points) < 1_000
    assert max(gaps) < supported.TINY < 16 * max(gaps)
    asked.clear()
    split_widest(support, 5)
    assert len(asked) == 5


@pytest.mark.parametrize("limit", [None, 4])
@settings(max_examples=50)
@given(problem=problems(highest=50))
def test_loops_and_sorting_find_the_same(limit, problem):
    pytest.importorskip("numba")
    found = []
    for compiled, piece in ((True, 1 << 20), (False, 1 << 20), (False, 1)):
        with pytest.MonkeyPatch.context() as patch:
            if not compiled:
                patch.setattr(support, "compiler", lambda: None)
            patch.setattr(runs, "PIECE_POINTS", piece)
            solved = least_frontier(*problem, points_limit=limit)
            assignments = [solved.assignment(number) for number in range(len(solved.points))]
            found.append((solved.points.tolist(), solved.lower.tolist(), assignments))
    assert found[0] == found[1] == found[2]


def test_equal_layers_are_combined_once_and_nothing_recurses(monkeypatch):
    """A layer is one variable with many values between two with few, which are eliminated later."""
    layers, made = 1_000, []
    projected = runs.projected

    def counted(tables, axis):
        made.append(1)
        return projected(tables, axis)

    monkeypatch.setattr(frontier_semiring, "projected", counted)
    random = np.random.default_rng(3)
    inner = tuple(random.integers(0, 4, (2, 2, 8)))
    outer = tuple(random.integers(0, 4, (2, 8, 2)))
    domains = [2 if v % 2 == 0 else 8 for v in range(2 * layers + 1)]
    tables = [PairTable((v, v + 1), *(inner if v % 2 == 0 else outer)) for v in range(2 * layers)]
    found = least_frontier(domains, tables)
    assert len(made) < 1.1 * layers
    middle = len(found.points) // 2
    assert list(costs(tables, found.assignment(middle))) == found.points[middle].tolist()
    times = eliminate(domains, [CostTable(t.scope, t.times) for t in tables])
    assert found.points[-1, 0] == times.optimum


def test_more_points_than_a_table_may_have_are_refused():
    domains, tables = chain(12, 6)
    with pytest.raises(WidthError, match=r"points of time and memory; the limit is 200. Limit the points"):
        least_frontier(domains, tables, table_limit=200)
    assert not least_frontier(domains, tables, table_limit=200, points_limit=8).proven


def test_an_impossible_limit_leaves_no_points():
    domains, tables = chain(5, 3)
    found = least_frontier(domains, tables, memory_limit=-1)
    assert found.points.shape == found.lower.shape == (0, 2)


@pytest.mark.parametrize(
    ("domains", "table", "options", "message"),
    [
        ([2, 0], PairTable((0,), np.zeros(2, int), np.zeros(2, int)), {}, "variable 1 has no value"),
        ([2], PairTable((0,), np.zeros(2, int), np.zeros(3, int)), {}, r"memory of shape \(3,\).*are \(2,\)"),
        ([2], PairTable((1,), np.zeros(2, int), np.zeros(2, int)), {}, r"variables \(1,\)"),
        ([2], PairTable((0, 0), np.zeros((2, 2), int), np.zeros((2, 2), int)), {}, r"variables \(0, 0\)"),
        ([2], PairTable((0,), np.array([0, 1 << 60]), np.zeros(2, int)), {}, "Use a larger unit"),
        ([2], PairTable((0,), np.zeros(2, int), np.zeros(2, int)), {"points_limit": 2}, "give at least 3"),
    ],
)
def test_malformed_problems_are_refused(domains, table, options, message):
    with pytest.raises(SolverError, match=message):
        least_frontier(domains, [table], **options)


def test_no_variables_and_no_tables():
    assert frontier.least_frontier([], []).points.tolist() == [[0, 0]]
    found = least_frontier([2, 1], [])
    assert (found.points.tolist(), found.assignment(0)) == ([[0, 0]], (0, 0))
