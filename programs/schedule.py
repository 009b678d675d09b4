"""Waits between workers: happens-before edges of instructions (Tofu, section 6).

A worker runs its own list in order. An instruction waits for

    the instruction that wrote the remote memory that it reads
    the remote instructions that read the previous contents of the memory that it writes

The previous contents are an older value of a shard, or another buffer that used the same place in the arena.
All waits point to earlier ticks of the clock (see `clock`), so there is no cycle and no deadlock. Waits that
follow from other waits are left out. Iterations do not overlap: the engine finishes one before the next.

Assumes: the offsets of `memory`. Guarantees: of two instructions that touch the same bytes, unless both read,
one comes after the other, directly or not; `check_memory` checks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import ProgramError
from .clock import TICKS_PER_OPERATION, reads, ticks, writes
from .memory import MemoryPlan
from .program import PartitionedGraph

Waits = tuple[tuple[int, int], ...]
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Schedule:
    """The waits and the clock's ticks of all instructions."""

    waits: tuple[tuple[Waits, ...], ...]
    """`waits[worker][index]` are (other worker, index of its instruction that must have finished).

    There is at most one for each other worker, and none that follows from earlier waits.
    """

    ticks: tuple[tuple[int, ...], ...]
    """`ticks[worker][index]`: the clock's value when the instruction runs."""

    def in_order(self, workers: Iterable[int]) -> list[tuple[int, int]]:
        """List the (worker, index) of all instructions of these workers in the order of the clock."""
        places = [(worker, index) for worker in workers for index in range(len(self.ticks[worker]))]
        return sorted(places, key=lambda place: (self.ticks[place[0]][place[1]], place))


class _Shadow:
    """Who last wrote and read each byte of one worker's arena, in ranges between its buffers' bounds."""

    def __init__(self, bounds: list[tuple[int, int]], workers: int) -> None:
        edges = np.unique(np.array(bounds, np.int64))
        self._ranges = np.searchsorted(edges, np.array(bounds, np.int64)).tolist() if bounds else []
        self.written = np.full(len(edges), _NEVER, np.int64)
        self.read = np.full((workers, len(edges)), _NEVER, np.int64)

    def span(self, buffer: int) -> slice:
        start, stop = self._ranges[buffer]
        return slice(start, stop)


def schedule(partitioned: PartitionedGraph, memory: MemoryPlan) -> Schedule:
    """Return every instruction's waits. Raises ProgramError if two workers race for memory in one tick."""
    return _Scheduler(partitioned, memory).run()


class _Scheduler:
    """Replays all instructions in the order of the clock over a shadow of every arena."""

    def __init__(self, partitioned: PartitionedGraph, memory: MemoryPlan) -> None:
        self._partitioned = partitioned
        self._ticks = [ticks(program) for program in partitioned.programs]
        self._shadows = [
            _Shadow(
                [(start, start + b.nbytes) for start, b in zip(offsets, program.buffers, strict=True)],
                partitioned.workers,
            )
            for offsets, program in zip(memory.offsets, partitioned.programs, strict=True)
        ]
        self._waits: list[list[Waits]] = [
            [()] * len(program.instructions) for program in partitioned.programs
        ]
        # known[w][i, v]: the last instruction of worker v that is known to be done once w's instruction i is
        self._known = [
            np.full((len(program.instructions), partitioned.workers), _NEVER, np.int64)
            for program in partitioned.programs
        ]

    def run(self) -> Schedule:
        by_tick: dict[int, list[tuple[int, int]]] = {}
        for worker, values in enumerate(self._ticks):
            for index, now in enumerate(values):
                by_tick.setdefault(now, []).append((worker, index))
        for now in sorted(by_tick):
            for worker, index in by_tick[now]:
                self._set_waits(worker, index)
            for worker, index in by_tick[now]:
                self._record_writes(worker, index)
            for worker, index in by_tick[now]:
                self._record_reads(worker, index, now)
        return Schedule(tuple(map(tuple, self._waits)), tuple(map(tuple, self._ticks)))

    def _set_waits(self, worker: int, index: int) -> None:
        instruction = self._partitioned.programs[worker].instructions[index]
        needed = np.full(self._partitioned.workers, _NEVER, np.int64)
        shadow = self._shadows[worker]
        for buffer in writes(instruction):
            span = shadow.span(buffer)
            if span.start < span.stop:
                np.maximum(needed, shadow.read[:, span].max(axis=1), out=needed)
        for owner, buffer in reads(worker, instruction):
            shadow, span = self._shadows[owner], self._shadows[owner].span(buffer)
            if owner != worker and span.start < span.stop:
                needed[owner] = max(needed[owner], shadow.written[span].max())
        known = self._known[worker][index]
        if index:
            np.maximum(known, self._known[worker][index - 1], out=known)
        known[worker] = index - 1
        if (needed <= known).all():
            return
        waits = [(other, needed[other].item()) for other in np.flatnonzero(needed > known).tolist()]
        kept: list[tuple[int, int]] = []
        for other, last in sorted(waits, key=lambda wait: -self._ticks[wait[0]][wait[1]]):
            assert self._ticks[other][last] < self._ticks[worker][index], "a wait must go back in time"
            if last > known[other]:
                kept.append((other, last))
                np.maximum(known, self._known[other][last], out=known)
                known[other] = max(known[other], last)
        self._waits[worker][index] = tuple(sorted(kept))

    def _record_writes(self, worker: int, index: int) -> None:
        shadow = self._shadows[worker]
        for buffer in writes(self._partitioned.programs[worker].instructions[index]):
            shadow.written[shadow.span(buffer)] = index

    def _record_reads(self, worker: int, index: int, now: int) -> None:
        for owner, buffer in reads(worker, self._partitioned.programs[worker].instructions[index]):
            if owner == worker:
                continue
            shadow, span = self._shadows[owner], self._shadows[owner].span(buffer)
            if span.start >= span.stop:
                continue
            last = int(shadow.written[span].max())
            if last >= 0 and self._ticks[owner][last] == now:
                self._refuse(owner, buffer, worker, now)
            shadow.read[worker, span] = index

    def _refuse(self, owner: int, buffer: int, reader: int, now: int) -> None:
        operation = self._partitioned.graph.operations[now // TICKS_PER_OPERATION]
        tensor = self._partitioned.graph.tensors[self._partitioned.programs[owner].buffers[buffer].tensor]
        raise ProgramError(
            f"operation '{operation.name}': worker {reader} reads '{tensor.name}' from worker {owner}, "
            "which writes that memory in the same tick; collect from a partial buffer instead of the shard"
        )
