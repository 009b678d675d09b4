"""List scheduling: whenever lanes are free, the waiting job that matters most begins.

The time lines of plans serve jobs as they become ready, and workers keep the order of their programs. A list
schedule has neither rule, so it tells in which order programs could run instead.

    forward     each job waits for those that it needs. Of the jobs whose lanes are all free, the one of the
                lowest priority number begins
    backward    the same from the end of the iteration: each job waits for those that need it. Times are
                mirrored, so that a job starts as late as the schedule allows

Jobs that occupy the same lanes wait together, so that a free lane has few jobs to choose from. Implemented
in: `start_early`, `start_late`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..support.compiled import Numbers, compiled, looped, numbers, plain, zeros
from ..support.integer_lists import IntegerLists
from .jobs import Edges, Jobs


def start_early(jobs: Jobs, priority: Sequence[int]) -> list[int]:
    """Return when each job starts if jobs of low priority numbers come first."""
    return _starts(jobs, jobs.needs, np.asarray(priority, np.int64))


def start_late(jobs: Jobs, priority: Sequence[int]) -> list[int]:
    """Return when each job starts if time runs backward, and jobs of high numbers come first.

    The first job starts at 0.
    """
    mirrored = _starts(jobs, jobs.needs[:, ::-1], -np.asarray(priority, np.int64))
    ends = [start + time for start, time in zip(mirrored, jobs.nanoseconds, strict=True)]
    whole = max(ends, default=0)
    return [whole - end for end in ends]


def rest(jobs: Jobs) -> list[int]:
    """Return the longest path from the start of each job to the end of the iteration."""
    found = numbers(jobs.nanoseconds)
    _add_longest(_lists(jobs.needs, len(found)), found)
    return plain(found)


class _Lists(NamedTuple):
    """Lists of numbers, one after the other."""

    firsts: Numbers
    """Where each list begins in `members`, and the end of the last one."""

    members: Numbers
    """The numbers of all lists."""


class _Queues(NamedTuple):
    """Where jobs wait: those that occupy the same lanes in one queue."""

    of_job: Numbers
    """The queue of each job."""

    lanes: _Lists
    """The lanes of each queue."""

    of_lane: _Lists
    """The queues of each lane."""


def _starts(jobs: Jobs, edges: Edges, priority: npt.NDArray[np.int64]) -> list[int]:
    """Return when each job starts if it waits for the first job of each of its edges."""
    count = len(jobs.nanoseconds)
    by_priority = np.argsort(priority, kind="stable")
    place = np.empty(count, np.int64)
    place[by_priority] = np.arange(count)
    missing = looped(np.bincount(edges[:, 1], minlength=count))
    start = zeros(count)
    _run(
        _lists(edges, count),
        missing,
        _queues(jobs),
        numbers(jobs.nanoseconds),
        looped(by_priority),
        looped(place),
        start,
    )
    return plain(start)


def _lists(pairs: npt.NDArray[np.int64], count: int) -> _Lists:
    """Return `count` lists as loops take them: of pairs `[pair, 2]`, each a list and a number in it."""
    found = IntegerLists.grouped(pairs[:, 0], pairs[:, 1], count)
    return _Lists(looped(found.firsts), looped(found.entries))


def _queues(jobs: Jobs) -> _Queues:
    """Return the queues in which jobs wait."""
    queues: dict[tuple[int, ...], int] = {}
    of_job = [queues.setdefault(lanes, len(queues)) for lanes in jobs.lanes]
    pairs = [(queue, lane) for lanes, queue in queues.items() for lane in lanes]
    occupied = np.array(pairs, np.int64).reshape(-1, 2)
    return _Queues(
        numbers(of_job), _lists(occupied, len(queues)), _lists(occupied[:, ::-1], len(jobs.lane_names))
    )


@compiled
def _add_longest(followers: _Lists, rest: Numbers) -> None:
    """Add the longest path that follows each job to its time."""
    for job in range(len(rest) - 1, -1, -1):
        longest = 0
        for place in range(followers.firsts[job], followers.firsts[job + 1]):
            longest = max(longest, rest[followers.members[place]])
        rest[job] += longest


@compiled
def _idle(lanes: _Lists, busy: Numbers, queue: int) -> bool:
    """Tell whether all lanes of a queue are free."""
    for place in range(lanes.firsts[queue], lanes.firsts[queue + 1]):
        if busy[lanes.members[place]]:
            return False
    return True


@compiled
def _first(queues: _Queues, busy: Numbers, head: Numbers, lane: int) -> int:
    """Return the queue of a free lane whose first job comes first of those that may begin; -1 without any."""
    found, first = -1, len(queues.of_job)
    for at in range(queues.of_lane.firsts[lane], queues.of_lane.firsts[lane + 1]):
        queue = queues.of_lane.members[at]
        if head[queue] < first and _idle(queues.lanes, busy, queue):
            found, first = queue, head[queue]
    return found


@compiled
def _run(
    followers: _Lists,
    missing: Numbers,
    queues: _Queues,
    nanoseconds: Numbers,
    by_priority: Numbers,
    place: Numbers,
    start: Numbers,
) -> None:
    """Write when each job starts. `missing` has the number of jobs that each one waits for.

    `by_priority` has the jobs in the order of their priority, and `place` the place of each one there.
    """
    lanes, of_lane, count = queues.lanes, queues.of_lane, len(missing)
    waiting = [[0] * 0 for each in range(len(lanes.firsts) - 1)]
    head = zeros(len(lanes.firsts) - 1)  # the place of the first job that waits in each queue
    for queue in range(len(head)):
        head[queue] = count
    busy = zeros(len(of_lane.firsts) - 1)
    able = [(0, 0, 0)] * 0
    running = [(0, 0)] * 0
    ready = [first for first in range(count) if not missing[first]]
    now = 0
    while True:
        for job in ready:
            queue = queues.of_job[job]
            heappush(waiting[queue], place[job])
            head[queue] = waiting[queue][0]
            if _idle(lanes, busy, queue):
                heappush(able, (head[queue], queue, -1))
        while able:
            _, queue, freed = heappop(able)
            while waiting[queue] and _idle(lanes, busy, queue):
                job = by_priority[heappop(waiting[queue])]
                head[queue] = waiting[queue][0] if waiting[queue] else count
                start[job] = now
                heappush(running, (now + nanoseconds[job], job))
                for at in range(lanes.firsts[queue], lanes.firsts[queue + 1]):
                    busy[lanes.members[at]] = 1
            if freed >= 0 and not busy[freed]:
                queue = _first(queues, busy, head, freed)
                if queue >= 0:
                    heappush(able, (head[queue], queue, freed))
        if not running:
            return
        now = running[0][0]
        ready.clear()
        ended = [0] * 0
        while running and running[0][0] == now:
            ended.append(heappop(running)[1])
            queue = queues.of_job[ended[-1]]
            for at in range(lanes.firsts[queue], lanes.firsts[queue + 1]):
                busy[lanes.members[at]] = 0
        for job in ended:
            for at in range(followers.firsts[job], followers.firsts[job + 1]):
                follower = followers.members[at]
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
            queue = queues.of_job[job]
            for at in range(lanes.firsts[queue], lanes.firsts[queue + 1]):
                lane = lanes.members[at]
                other = _first(queues, busy, head, lane)
                if other >= 0:
                    heappush(able, (head[other], other, lane))
