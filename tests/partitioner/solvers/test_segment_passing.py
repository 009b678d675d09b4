"""Handing costs on from segment to segment proves the optimum that dives find."""

from __future__ import annotations

import pytest

from tofu.partitioner.solvers import anytime, segment_passing, segments
from tofu.partitioner.solvers.elimination import eliminate
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.segment_passing import SegmentPassing

from .problems import assert_closed, beads, ordered


@pytest.mark.parametrize("states", [10, 100, 10_000])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_handed_on_never_exceeds_the_optimum(short, seed, states):
    domains, cost_tables = beads(8, seed=seed)
    best = eliminate(domains, cost_tables).optimum
    problem = MessagePassing(ordered(domains, cost_tables)).reweighted()
    row = SegmentPassing(segments.segments(problem), float(best + 500 - problem.bound))
    bounds = [0.0]
    for backwards in (False, True, False, True):
        row.hand_on(backwards, states, bounds.append)
        assert bounds[-1] == row.bound
    assert len(bounds) == 1 + 4 * len(row.segments)
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
    row.hand_on(not backwards, 1 << 20, lambda bound: None)
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
