"""Segments of an ordered problem add up to the whole, whatever is handed from one to the next."""

from __future__ import annotations

import numpy as np

from tofu.partitioner.solvers import segments
from tofu.partitioner.solvers.message_passing import MessagePassing

from .problems import beads, ordered


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
