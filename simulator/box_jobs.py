"""The jobs of blocks, one by one, and what each comes after, for time lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..support.compiled import plain
from .blocks import (
    BEGIN,
    FINISH,
    LEG_FIRSTS,
    LEG_TIME,
    LEG_WAY,
    MESSAGE_BYTES,
    NEED_FIRSTS,
    READ_FIRSTS,
    RUNNER,
    SENDERS,
    TIME_SOURCES,
    TRANSFERS,
    WORKERS,
    WRITE_FIRSTS,
    OperationBlock,
)
from .iteration_jobs import IterationJobs, JobKind
from .jobs import Edges, Jobs, Moments
from .times import SOURCES, Source, SourceCounts
from .ways import Ways

Times = tuple[list[int], list[int], list[int]]
"""When the instructions of a block are ready, when they end, and when their legs start."""

_NONE = -1


class BoxJobs:
    """Collects the jobs of blocks, in the order of the clock, and when each runs."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._wakes: list[int] = ways.wakes.tolist()
        self._nanoseconds: list[int] = []
        self._lanes: list[tuple[int, ...]] = []
        self._ready: list[int] = []
        self._start: list[int] = []
        self._kinds: list[int] = []
        self._instructions: list[int] = []
        self._workers: list[int] = []
        self._operations: list[int] = []
        self._sources: list[int] = []
        self._nbytes: list[int] = []
        self.sources_of_times = SourceCounts()
        """Where the times of instructions come from."""
        self._needs: set[tuple[int, int]] = set()
        self._order: list[tuple[int, int]] = []
        self._runners: dict[int, int] = {}
        """The runner of each instruction, by its last job."""
        self._ends: dict[int, int] = {}
        """The end of each instruction, by its last job."""
        self._last: dict[int, int] = {}
        """The last job of each runner."""
        self._written: dict[tuple[int, int], int] = {}
        """The last job that wrote each holding."""
        self._read: dict[tuple[int, int], set[int]] = {}
        """The last jobs of the instructions that have read each holding since."""

    def add(self, operation: int, block: OperationBlock, storage: Sequence[int], times: Times) -> None:
        """Add the jobs of an operation; `storage` has the version whose storage each one touched has."""
        words = plain(block.words)
        workers, transfers = block.note(WORKERS), block.note(TRANSFERS)
        sources = [SOURCES[source] for source in block.note(TIME_SOURCES)]
        ready, end, leg_start = times
        lasts: list[int] = []
        for number in range(block.count):
            reads = _uses(words, READ_FIRSTS, number, storage)
            writes = _uses(words, WRITE_FIRSTS, number, storage)
            before = {lasts[other] for other in _listed(words, NEED_FIRSTS, number)}
            before.update(self._written[use] for use in (*reads, *writes) if use in self._written)
            before.update(other for use in writes for other in self._read.get(use, ()))
            runner = words[words[RUNNER] + number]
            self._workers.append(workers[number])
            self._operations.append(operation)
            first = self._begin(before, runner, self._wakes[workers[number]])
            last = self._run(words, bool(transfers[number]), number, ready[number], end[number], leg_start)
            self._count(sources[number], bool(transfers[number]), first, last)
            self._needs.update((first, each) for each in range(first + 1, last))
            self._needs.update((each, last) for each in range(first + 1, last))
            if first + 1 == last:
                self._needs.add((first, last))
            for use in reads:
                self._read.setdefault(use, set()).add(last)
            for use in writes:
                self._read.pop(use, None)
                self._written[use] = last
            if runner in self._last:
                self._order.append((self._last[runner], first))
            self._last[runner], self._runners[last], self._ends[last] = last, runner, end[number]
            lasts.append(last)
        self._sources += block.note(SENDERS)
        self._nbytes += block.note(MESSAGE_BYTES)

    def _begin(self, before: Iterable[int], runner: int, wake: int) -> int:
        """Let the next instruction wait for jobs, and wake if one runs elsewhere; return its first job."""
        elsewhere = {each for each in before if wake and self._runners[each] != runner}
        if elsewhere:
            moment = max(self._ends[each] for each in elsewhere)
            job = len(self._nanoseconds)
            self._needs.update((each, job) for each in elsewhere)
            self._needs.add((job, job + 1))
            self._job(JobKind.WAKE, wake, _NONE, moment, moment)
        first = len(self._nanoseconds)
        self._needs.update((each, first) for each in before if each not in elsewhere)
        return first

    def _run(
        self,
        words: Sequence[int],
        transfer: bool,
        number: int,
        ready: int,
        end: int,
        leg_start: Sequence[int],
    ) -> int:
        """Add the jobs of an instruction of a block; return the last one."""
        begin, finish = words[words[BEGIN] + number], words[words[FINISH] + number]
        if transfer:
            self._job(JobKind.BEGIN, begin, _NONE, ready, ready)
        kind = JobKind.MESSAGE if transfer else JobKind.COMPUTE
        for leg in range(words[words[LEG_FIRSTS] + number], words[words[LEG_FIRSTS] + number + 1]):
            time, way = words[words[LEG_TIME] + leg], words[words[LEG_WAY] + leg]
            self._job(kind, time, way, ready + begin, leg_start[leg])
        if transfer:
            self._job(JobKind.FINISH, finish, _NONE, end - finish, end - finish)
        return len(self._nanoseconds) - 1

    def _count(self, source: Source, transfer: bool, first: int, last: int) -> None:
        """Count the time of an instruction, unless it follows from the links."""
        linked = transfer and source == "estimated"
        self.sources_of_times.add(0 if linked else sum(self._nanoseconds[first : last + 1]), source)

    def _job(self, kind: JobKind, nanoseconds: int, way: int, ready: int, start: int) -> None:
        self._kinds.append(kind)
        self._instructions.append(len(self._workers) - 1)
        self._nanoseconds.append(nanoseconds)
        self._lanes.append(self._ways.lanes[way] if way != _NONE else ())
        self._ready.append(ready)
        self._start.append(start)

    def result(self) -> tuple[IterationJobs, Moments]:
        """Return all jobs, and when each runs."""
        names = self._ways.lane_names
        jobs = Jobs(self._nanoseconds, self._lanes, names, _edges(self._needs), _edges(self._order))
        found = IterationJobs(
            jobs,
            self._kinds,
            self._instructions,
            self._workers,
            self._operations,
            self._sources,
            self._nbytes,
        )
        return found, Moments(self._ready, self._start)


def _edges(pairs: set[tuple[int, int]] | list[tuple[int, int]]) -> Edges:
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _listed(words: Sequence[int], head: int, number: int) -> Sequence[int]:
    return words[words[words[head] + number] : words[words[head] + number + 1]]


def _uses(words: Sequence[int], head: int, number: int, storage: Sequence[int]) -> list[tuple[int, int]]:
    """Return the holdings that an instruction reads or writes, each by the version whose storage it has."""
    listed = iter(_listed(words, head, number))
    return [(storage[slot], held) for slot, held in zip(listed, listed, strict=True)]
