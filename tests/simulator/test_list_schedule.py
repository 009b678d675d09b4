"""List schedules keep needs and lanes, and begin what matters most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from tofu.simulator.jobs import Jobs
from tofu.simulator.list_schedule import rest, start_early, start_late

from .random_jobs import random_jobs

NO_EDGES = np.empty((0, 2), np.int64)


def require_legal(jobs: Jobs, start: Sequence[int]) -> None:
    """Needs are kept, and no lane has two jobs at once."""
    end = [begin + time for begin, time in zip(start, jobs.nanoseconds, strict=True)]
    assert min(start, default=0) >= 0
    for before, after in jobs.needs.tolist():
        assert start[after] >= end[before]
    for lane in range(len(jobs.lane_names)):
        spans = sorted((start[job], end[job]) for job, own in enumerate(jobs.lanes) if lane in own)
        for (_, first), (second, _) in pairwise(spans):
            assert second >= first


@pytest.mark.parametrize("seed", range(20))
def test_schedules_are_legal_both_ways(seed: int) -> None:
    jobs = random_jobs(Random(seed))
    early = start_early(jobs, [-each for each in rest(jobs)])
    require_legal(jobs, early)
    ends = [start + time for start, time in zip(early, jobs.nanoseconds, strict=True)]
    require_legal(jobs, start_late(jobs, ends))


def test_a_lane_prefers_low_priority_numbers() -> None:
    jobs = Jobs(
        [5, 7, 1], [(0,), (0,), (0,)], ["lane"], np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
    )
    assert start_early(jobs, [2, 0, 1]) == [8, 0, 7]
    assert start_late(jobs, [2, 0, 1]) == [8, 0, 7]


def test_the_rest_of_a_chain_is_all_that_waits_for_it() -> None:
    needs = np.array([[0, 1], [1, 3], [2, 3]], np.int64)
    jobs = Jobs([1, 2, 10, 4], [(), (), (), ()], [], needs, NO_EDGES)
    assert rest(jobs) == [7, 6, 14, 4]
    assert start_early(jobs, [0] * 4) == [0, 1, 0, 10]
    assert start_late(jobs, [0] * 4) == [7, 8, 0, 10]
