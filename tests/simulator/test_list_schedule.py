"""List schedules keep needs and lanes, leave no lane idle, and prefer jobs by priority."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tofu.simulator.jobs import Jobs
from tofu.simulator.list_schedule import rest, start_early, start_late

from ..compiled_loops import same_in_plain_python
from .random_jobs import random_jobs


def assert_possible(jobs: Jobs, start: list[int]) -> None:
    """Jobs begin after those that they need, and no lane serves two at once."""
    end = [begin + time for begin, time in zip(start, jobs.nanoseconds, strict=True)]
    assert min(start) == 0
    assert all(end[before] <= start[after] for before, after in jobs.needs.tolist())
    for lane in range(len(jobs.lane_names)):
        served = sorted((start[job], end[job]) for job in range(len(start)) if lane in jobs.lanes[job])
        assert all(one[1] <= other[0] for one, other in pairwise(served))


@pytest.mark.parametrize("seed", range(20))
def test_schedules_are_possible_and_leave_no_lane_idle(seed: int) -> None:
    draw = random.Random(seed)
    jobs = random_jobs(draw)
    count = len(jobs.nanoseconds)
    priority = draw.sample(range(count), count)
    early, late = start_early(jobs, priority), start_late(jobs, priority)
    assert_possible(jobs, early)
    assert_possible(jobs, late)
    end = [begin + time for begin, time in zip(early, jobs.nanoseconds, strict=True)]
    for job in range(count):
        ready = max((end[before] for before, after in jobs.needs.tolist() if after == job), default=0)
        for moment in range(ready, early[job]):
            others = [other for other in range(count) if early[other] <= moment < end[other]]
            assert any(set(jobs.lanes[job]) & set(jobs.lanes[other]) for other in others)


def test_lanes_prefer_low_numbers_forward_and_high_ones_backward() -> None:
    jobs = Jobs([3, 2, 4], [(0,)] * 3, ["lane"], np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))
    assert start_early(jobs, [2, 0, 1]) == [6, 0, 2]
    assert start_late(jobs, [2, 0, 1]) == [6, 0, 2]
    needed = replace(jobs, needs=np.array([(0, 1)]))
    assert start_early(needed, [2, 0, 1]) == [4, 7, 0]
    assert start_late(needed, [2, 0, 1]) == [0, 3, 5]


def test_the_rest_is_the_longest_path() -> None:
    jobs = random_jobs(random.Random(1))

    def longest(job: int) -> int:
        after = [other for before, other in jobs.needs.tolist() if before == job]
        return jobs.nanoseconds[job] + max(map(longest, after), default=0)

    assert rest(jobs) == [longest(job) for job in range(len(jobs.nanoseconds))]


def digest() -> str:
    draw = random.Random(5)
    found = []
    for _ in range(20):
        jobs = random_jobs(draw)
        priority = draw.sample(range(len(jobs.nanoseconds)), len(jobs.nanoseconds))
        found.append((rest(jobs), start_early(jobs, priority), start_late(jobs, priority)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_compiled_loops_give_the_same() -> None:
    same_in_plain_python(digest)
