"""Segments add up to the whole, and handing costs on proves the optimum that dives find."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.partitioner.solvers import anytime, segment_passing, segments
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.linear_order import linear_order
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core
from tofu.partitioner.solvers.segment_passing import SegmentPassing

from .problems import assert_closed


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
    whole = core(domains, cost_tables).problem
    return whole.reordered(linear_order(whole.neighbours(), whole.domains))


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(segments, "SHORTEST", 4)


def test_segments_share_no_costs(short):
    problem = MessagePassing(ordered(*beads(6))).reweighted()
    row = segments.segments(problem)
    assert len(row) > 3
    random = np.random.default_rng(1)
    handed = [random.integers(0, 99, segment.extents(segment.after)).astype(float) for segment in row]
    assignment = random.integers(0, 4, len(problem.domains)).tolist()
    total = 0
    for number, segment in enumerate(row):
        before = handed[number - 1] if number else np.zeros(())
        total += segment.shifted(before, handed[number]).cost([assignment[v] for v in segment.variables])
    assert total == problem.cost(assignment)
    assert all(len(segment.before) <= 2 for segment in row)


def test_without_waists_there_are_no_segments(monkeypatch):
    monkeypatch.setattr(segments, "LONGEST", 10)
    problem = MessagePassing(ordered(*beads(1, size=12))).reweighted()
    assert segments.segments(problem) == []


@pytest.mark.parametrize("states", [10, 100, 10_000])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_handed_on_never_exceeds_the_optimum(short, seed, states):
    domains, cost_tables = beads(8, seed=seed)
    best = eliminate(domains, cost_tables).optimum
    problem = MessagePassing(ordered(domains, cost_tables)).reweighted()
    row = SegmentPassing(segments.segments(problem), float(best + 500 - problem.bound))
    bounds = [0.0]
    for backwards in (False, True, False, True):
        row.hand_on(backwards, states)
        bounds.append(row.bound)
    assert bounds == sorted(bounds)
    assert 0 < bounds[-1] <= best - problem.bound
    if states == 10_000:
        assert bounds[-1] == best - problem.bound


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_dive_after_all_is_handed_on_is_a_best_assignment(short, seed, backwards):
    domains, cost_tables = beads(8, seed=seed)
    best = eliminate(domains, cost_tables).optimum
    problem = MessagePassing(ordered(domains, cost_tables)).reweighted()
    row = SegmentPassing(segments.segments(problem), float(2 * best - problem.bound))
    row.hand_on(not backwards, 1 << 20)
    found = row.dive(backwards, 1 << 16)
    assert problem.bound + problem.cost(found) == best


def test_a_dive_says_where_nothing_is_within_the_gap(short, monkeypatch):
    monkeypatch.setattr(segment_passing, "SWEEPS", 0)
    problem = MessagePassing(ordered(*beads(6))).reweighted()
    assert SegmentPassing(segments.segments(problem), 2.0).dive(False, 1 << 16) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_row_of_segments_is_closed_without_windows(short, monkeypatch, seed):
    monkeypatch.setattr(anytime, "WindowBounds", None)
    assert_closed(*beads(30, size=6, seed=seed))
