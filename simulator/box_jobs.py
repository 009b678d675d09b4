"""The jobs of blocks, one by one, and what each comes after: for checks, which do not simulate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..support.compiled import plain
from .blocks import (
    BEGIN,
    FINISH,
    LEG_FIRSTS,
    LEG_TIME,
    LEG_WAY,
    NEED_FIRSTS,
    READ_FIRSTS,
    WRITE_FIRSTS,
    OperationBlock,
)
from .jobs import Edges, Jobs, Moments
from .ways import Ways

Times = tuple[list[int], list[int], list[int]]
"""When the instructions of a block are ready, when they end, and when their legs start."""


def box_jobs(
    blocks: Sequence[tuple[OperationBlock, Sequence[int]]], times: Sequence[Times], ways: Ways
) -> tuple[Jobs, Moments]:
    """Return the jobs of all blocks in the order of the clock, and when each runs.

    Each block comes with the tensors whose storage the tensors have that its operation touches.
    """
    found = _Collected(ways)
    for (block, storage), when in zip(blocks, times, strict=True):
        found.add(block, storage, when)
    return found.result()


class _Collected:
    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._nanoseconds: list[int] = []
        self._lanes: list[tuple[int, ...]] = []
        self._ready: list[int] = []
        self._start: list[int] = []
        self._needs: set[tuple[int, int]] = set()
        self._order: list[tuple[int, int]] = []
        self._last: dict[tuple[int, bool], int] = {}
        """The last job on each lane of a worker."""
        self._written: dict[tuple[int, int], int] = {}
        """The last job that wrote each holding."""
        self._read: dict[tuple[int, int], set[int]] = {}
        """The last jobs of the instructions that have read each holding since."""

    def add(self, block: OperationBlock, storage: Sequence[int], times: Times) -> None:
        """Add the jobs of a block."""
        words = plain(block.words)
        ready, end, leg_start = times
        lasts: list[int] = []
        for number in range(block.count):
            worker, transfer = block.workers[number], block.transfers[number]
            first = len(self._nanoseconds)
            legs = range(words[words[LEG_FIRSTS] + number], words[words[LEG_FIRSTS] + number + 1])
            begin, finish = words[words[BEGIN] + number], words[words[FINISH] + number]
            if transfer:
                self._job(begin, -1, ready[number], ready[number])
            for leg in legs:
                self._job(
                    words[words[LEG_TIME] + leg],
                    words[words[LEG_WAY] + leg],
                    ready[number] + begin,
                    leg_start[leg],
                )
            if transfer:
                self._job(finish, -1, end[number] - finish, end[number] - finish)
            last = len(self._nanoseconds) - 1
            lasts.append(last)
            between = range(first + 1, last)
            self._needs.update((first, each) for each in between)
            self._needs.update((each, last) for each in between)
            if transfer and not between:
                self._needs.add((first, last))
            before = {lasts[other] for other in _listed(words, NEED_FIRSTS, number)}
            reads = _uses(words, READ_FIRSTS, number, storage)
            writes = _uses(words, WRITE_FIRSTS, number, storage)
            before.update(self._written[use] for use in (*reads, *writes) if use in self._written)
            for use in reads:
                self._read.setdefault(use, set()).add(last)
            for use in writes:
                before |= self._read.pop(use, set())
                self._written[use] = last
            self._needs.update((each, first) for each in before - {last})
            lane = worker, transfer
            if lane in self._last:
                self._order.append((self._last[lane], first))
            self._last[lane] = last

    def _job(self, nanoseconds: int, way: int, ready: int, start: int) -> None:
        self._nanoseconds.append(nanoseconds)
        self._lanes.append(self._ways.lanes[way] if way >= 0 else ())
        self._ready.append(ready)
        self._start.append(start)

    def result(self) -> tuple[Jobs, Moments]:
        """Return all jobs."""
        jobs = Jobs(
            self._nanoseconds, self._lanes, self._ways.lane_names, _edges(self._needs), _edges(self._order)
        )
        return jobs, Moments(self._ready, self._start)


def _edges(pairs: set[tuple[int, int]] | list[tuple[int, int]]) -> Edges:
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _listed(words: Sequence[int], head: int, number: int) -> Sequence[int]:
    return words[words[words[head] + number] : words[words[head] + number + 1]]


def _uses(words: Sequence[int], head: int, number: int, storage: Sequence[int]) -> list[tuple[int, int]]:
    """Return the holdings that an instruction reads or writes, each by the tensor whose storage it has."""
    listed = iter(_listed(words, head, number))
    return [(storage[slot], held) for slot, held in zip(listed, listed, strict=True)]
