"""Random jobs, and their times found without a queue."""

from __future__ import annotations

import random

import numpy as np

from tofu.simulator.jobs import Jobs, Moments


def random_jobs(draw: random.Random, count: int = 40, lanes: int = 5) -> Jobs:
    """Jobs of which some take no time, some occupy several lanes, and some none."""
    pairs = [
        (before, after)
        for after in range(count)
        for before in range(after)
        if draw.random() < 2.5 / max(after, 1)
    ]
    ordered = [draw.random() < 0.3 for _ in pairs]
    groups = [
        [pair for pair, late in zip(pairs, ordered, strict=True) if late is wanted]
        for wanted in (False, True)
    ]
    needs, order = (np.array(group, np.int64).reshape(-1, 2) for group in groups)
    return Jobs(
        [draw.choice((0, 1, 1, 2, 3, 7)) for _ in range(count)],
        [tuple(draw.sample(range(lanes), draw.choice((0, 1, 1, 1, 2, 3)))) for _ in range(count)],
        [f"lane {number}" for number in range(lanes)],
        needs,
        order,
    )


def settle(jobs: Jobs, draw: random.Random) -> Moments:
    """Visit jobs in random orders and apply the rules to what is known so far, until nothing changes."""
    count = len(jobs.nanoseconds)
    before: list[list[int]] = [[] for _ in range(count)]
    for earlier, later in jobs.edges.tolist():
        before[later].append(earlier)
    ready, start = [0] * count, [0] * count
    members = [
        [job for job in range(count) if lane in jobs.lanes[job]] for lane in range(len(jobs.lane_names))
    ]
    while True:
        known = list(ready), list(start)
        visited = draw.sample(range(count), count)
        for job in visited:
            ready[job] = max((start[each] + jobs.nanoseconds[each] for each in before[job]), default=0)
        free: dict[int, int] = dict.fromkeys(range(count), 0)
        for lane in members:
            end = 0
            for job in sorted(lane, key=lambda job: (ready[job], job)):
                free[job] = max(free[job], end)
                end = max(end, start[job] + jobs.nanoseconds[job])
        for job in visited:
            start[job] = max(ready[job], free[job])
        if known == (ready, start):
            return Moments(ready, start)
