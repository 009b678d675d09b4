"""List scheduling: whenever lanes are free, they begin the waiting job that matters most.

The time lines of plans serve jobs as they become ready, and workers keep the order of their programs. A list
schedule has neither rule, so it tells in which order programs could run instead.

    forward     each job waits for those that it needs, and lanes prefer jobs of low priority numbers
    backward    the same from the end of the iteration: each job waits for those that need it. Times are
                mirrored, so that a job starts as late as the schedule allows

Implemented in: `start_early`, `start_late`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from .jobs import Edges, Jobs


def start_early(jobs: Jobs, priority: Sequence[int]) -> list[int]:
    """Return when each job starts if lanes begin those of low priority numbers first."""
    return _ListSchedule(jobs, jobs.needs, priority).run()


def start_late(jobs: Jobs, priority: Sequence[int]) -> list[int]:
    """Return when each job starts if time runs backward, and lanes take jobs of high numbers first.

    The first job starts at 0.
    """
    mirrored = _ListSchedule(jobs, jobs.needs[:, ::-1], [-each for each in priority]).run()
    ends = [start + time for start, time in zip(mirrored, jobs.nanoseconds, strict=True)]
    whole = max(ends, default=0)
    return [whole - end for end in ends]


def rest(jobs: Jobs) -> list[int]:
    """Return the longest path from the start of each job to the end of the iteration."""
    found = list(jobs.nanoseconds)
    followers = _followers(len(found), jobs.needs)
    for job in reversed(range(len(found))):
        found[job] += max((found[each] for each in followers[job]), default=0)
    return found


class _ListSchedule:
    """A list schedule as it is made."""

    def __init__(self, jobs: Jobs, edges: Edges, priority: Sequence[int]) -> None:
        count = len(jobs.nanoseconds)
        self._jobs = jobs
        self._priority = priority
        self._followers = _followers(count, edges)
        self._missing = [0] * count
        for _, after in edges.tolist():
            self._missing[after] += 1
        self._start = [-1] * count
        self._busy = [False] * len(jobs.lane_names)
        self._waiting: list[list[tuple[int, int]]] = [[] for _ in jobs.lane_names]
        """The jobs that wait for each lane, by priority. A job waits for one lane at a time, a busy one."""
        self._running: list[tuple[int, int]] = []
        """The end of each job that runs, and its number."""

    def run(self) -> list[int]:
        """Return when each job starts."""
        now, ready, freed = 0, [job for job, missing in enumerate(self._missing) if not missing], set[int]()
        while True:
            for job in ready:
                if self._jobs.lanes[job]:
                    freed.add(self._wait(job, self._jobs.lanes[job][0]))
                else:
                    self._begin(job, now)
            for lane in sorted(freed):
                self._serve(lane, now)
            if not self._running:
                return self._start
            now, ready, freed = self._running[0][0], [], set()
            while self._running and self._running[0][0] == now:
                self._end(heappop(self._running)[1], ready, freed)

    def _wait(self, job: int, lane: int) -> int:
        """Let a job wait for a lane, and return the lane."""
        heappush(self._waiting[lane], (self._priority[job], job))
        return lane

    def _serve(self, lane: int, now: int) -> None:
        """Begin the first job that waits for a free lane. Those that need a busy one wait for that one."""
        waiting = self._waiting[lane]
        while waiting and not self._busy[lane]:
            job = heappop(waiting)[1]
            busy = next((each for each in self._jobs.lanes[job] if self._busy[each]), None)
            if busy is None:
                self._begin(job, now)
            else:
                self._wait(job, busy)

    def _begin(self, job: int, now: int) -> None:
        self._start[job] = now
        for lane in self._jobs.lanes[job]:
            self._busy[lane] = True
        heappush(self._running, (now + self._jobs.nanoseconds[job], job))

    def _end(self, job: int, ready: list[int], freed: set[int]) -> None:
        """Free the lanes of a job, and add the jobs to `ready` that waited for it alone."""
        for lane in self._jobs.lanes[job]:
            self._busy[lane] = False
            freed.add(lane)
        for follower in self._followers[job]:
            self._missing[follower] -= 1
            if not self._missing[follower]:
                ready.append(follower)


def _followers(count: int, edges: Edges) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for before, after in edges.tolist():
        found[before].append(after)
    return found
