"""Jobs, and when each of them runs.

A job is *ready* when all jobs that it comes after have ended. It starts when it is ready and all lanes that
it occupies are free, and it occupies all of them until it ends. Every lane serves jobs in the order in which
they become ready, and jobs that become ready at the same time by their numbers. A job without lanes starts
when it is ready.

A job comes only after jobs with smaller numbers, so the times are unique. Of all jobs whose times are not
known, the one with the earliest ready time, and of several the one with the smallest number, can be delayed
by no other: those become ready later, or at the same time with a larger number. `run` visits jobs in that
order. Times are whole nanoseconds, so they are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from ..support.integer_lists import IntegerLists

Edges = npt.NDArray[np.int64]
"""`[edge, 2]`: the number of a job, and of one that comes after it."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Things to do that occupy lanes for a while, by number."""

    nanoseconds: Sequence[int]
    """The time that each job takes."""

    lanes: Sequence[tuple[int, ...]]
    """The lanes that each job occupies."""

    lane_names: Sequence[str]
    """The name of each lane."""

    needs: Edges
    """Which job needs what another one makes, or overwrites what another one reads."""

    order: Edges
    """Which job comes after another one although it does not need it: lanes that keep their own order, memory
    that is used again.
    """

    def with_infinite_lanes(self) -> Jobs:
        """Return the same jobs with nothing but their needs: all lanes serve any number of jobs at once."""
        return replace(self, lanes=[()] * len(self.lanes), order=self.order[:0])

    @property
    def edges(self) -> Edges:
        """All pairs of jobs of which the second comes after the first."""
        return np.concatenate([self.needs, self.order])


@dataclass(frozen=True, slots=True)
class Moments:
    """When each job is ready, and when it starts, in nanoseconds."""

    ready: Sequence[int]
    """When all jobs that it comes after have ended."""

    start: Sequence[int]
    """When it starts."""


def run(jobs: Jobs) -> Moments:
    """Return when every job is ready and when it starts, in time about linear in jobs and edges."""
    count = len(jobs.nanoseconds)
    edges = jobs.edges
    assert (edges[:, 0] < edges[:, 1]).all(), "a job comes only after jobs with smaller numbers"
    after = IntegerLists.grouped(edges[:, 0], edges[:, 1], count)
    followers, firsts = after.entries.tolist(), after.firsts.tolist()
    missing = np.bincount(edges[:, 1], minlength=count).tolist()
    lanes, nanoseconds = jobs.lanes, jobs.nanoseconds
    ready, start, free = [0] * count, [0] * count, [0] * len(jobs.lane_names)
    started = [job for job in range(count) if not missing[job] and not lanes[job]]
    queue = [job for job in range(count) if not missing[job] and lanes[job]]  # ready time * count + number
    while True:
        while started:
            job = started.pop()
            end = start[job] + nanoseconds[job]
            for follower in followers[firsts[job] : firsts[job + 1]]:
                if ready[follower] < end:
                    ready[follower] = end
                missing[follower] -= 1
                if not missing[follower]:
                    if lanes[follower]:
                        heappush(queue, ready[follower] * count + follower)
                    else:
                        start[follower] = ready[follower]
                        started.append(follower)
        if not queue:
            return Moments(ready, start)
        job = heappop(queue) % count
        begin = ready[job]
        for lane in lanes[job]:
            if begin < free[lane]:
                begin = free[lane]
        start[job] = begin
        for lane in lanes[job]:
            free[lane] = begin + nanoseconds[job]
        started.append(job)
