"""Chains of jobs that decide how long a run takes."""

from __future__ import annotations

import numpy as np

from .jobs import Jobs, Moments

_NONE = -1


def deciding_path(jobs: Jobs, moments: Moments) -> list[int]:
    """Return a chain of jobs from the start to the end of a run: each starts when the one before ends.

    A job waits for the one before because it comes after it, or because a lane is occupied.
    """
    if not jobs.nanoseconds:
        return []
    start = np.array(moments.start, np.int64)
    end = start + np.array(jobs.nanoseconds, np.int64)
    earlier, later = jobs.edges.T
    tight = np.flatnonzero(end[earlier] == start[later])
    before = np.full(len(start), _NONE)
    before[later[tight[::-1]]] = earlier[tight[::-1]]
    for job, blocker in _blockers(jobs, moments, end.tolist()):
        before[job] = blocker
    job = int(end.argmax())
    found = [job]
    while start[job]:
        job = int(before[job])
        found.append(job)
    return found[::-1]


def _blockers(jobs: Jobs, moments: Moments, end: list[int]) -> list[tuple[int, int]]:
    """List the jobs that start later than they are ready, each with the one that occupied its lane."""
    last = [_NONE] * len(jobs.lane_names)
    found = []
    held = (job for job, lanes in enumerate(jobs.lanes) if lanes)
    for job in sorted(held, key=lambda job: (moments.ready[job], job)):
        for lane in jobs.lanes[job]:
            delayed = moments.ready[job] < moments.start[job]
            if delayed and last[lane] != _NONE and end[last[lane]] == moments.start[job]:
                found.append((job, last[lane]))
            last[lane] = job
    return found
