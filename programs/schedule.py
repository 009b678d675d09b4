"""Waits between lanes: happens-before edges of instructions (Tofu, section 6).

Every worker has two lanes (`program.Lane`), and each runs its instructions in order. An instruction that
reads memory waits for the instruction of another lane that wrote it. An instruction that writes memory waits
for the instructions of other lanes that wrote or read the previous contents: an older value of a home, or
another buffer that used the same place in the arena.

No run can deadlock. Every wait points to an earlier tick of the clock, and every lane is in the order of the
clock. So of all instructions that have not finished, one with the earliest tick has nothing left to wait for.
Iterations do not overlap: the engine finishes one before the next.

Assumes: the offsets of `memory`. Guarantees: of two instructions that touch the same bytes, unless both read,
one comes after the other, directly or not; `check_memory` checks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ProgramError
from .clock import check_order, operation_at, reads, writes
from .memory import MemoryPlan
from .program import Lane, PartitionedGraph, lane_of

Waits = tuple[tuple[int, int], ...]
LaneOf = tuple[int, Lane]
"""A worker and one of its lanes."""

LANES = len(Lane)

_NEVER = -1


@dataclass(frozen=True, slots=True)
class Schedule:
    """The waits, the lanes and the clock's ticks of all instructions."""

    waits: tuple[tuple[Waits, ...], ...]
    """`waits[worker][index]` are (worker, index of its instruction that must have finished).

    There is at most one for each other lane, and none that follows from earlier waits.
    """

    lanes: tuple[tuple[Lane, ...], ...]
    """`lanes[worker][index]`: the lane in which the instruction runs."""

    ticks: tuple[tuple[int, ...], ...]
    """`ticks[worker][index]`: the clock's value when the instruction runs."""

    def in_order(self, lanes: Iterable[LaneOf]) -> list[tuple[int, int]]:
        """List the (worker, index) of all instructions of these lanes in the order of the clock."""
        chosen = set(lanes)
        places = [
            (worker, index)
            for worker, own in enumerate(self.lanes)
            for index, lane in enumerate(own)
            if (worker, lane) in chosen
        ]
        return sorted(places, key=lambda place: (self.ticks[place[0]][place[1]], place))


class _Shadow:
    """Who last wrote and read each byte of one worker's arena, in ranges between its buffers' bounds."""

    def __init__(self, bounds: list[tuple[int, int]], lanes: int) -> None:
        edges = np.unique(np.array(bounds, np.int64))
        self._ranges = np.searchsorted(edges, np.array(bounds, np.int64)).tolist() if bounds else []
        self.used = np.full((lanes, len(edges)), _NEVER, np.int64)
        """The last instruction of every lane that read or wrote the range."""
        self.written = np.full((LANES, len(edges)), _NEVER, np.int64)
        """The last instruction of either of the worker's own lanes that wrote the range."""

    def span(self, buffer: int) -> slice:
        start, stop = self._ranges[buffer]
        return slice(start, stop)


def schedule(partitioned: PartitionedGraph, memory: MemoryPlan) -> Schedule:
    """Return every instruction's waits. Raises ProgramError if two lanes race for memory in one tick."""
    return _Scheduler(partitioned, memory).run()


class _Scheduler:
    """Replays all instructions in the order of the clock over a shadow of every arena."""

    def __init__(self, partitioned: PartitionedGraph, memory: MemoryPlan) -> None:
        self._partitioned = partitioned
        self._lanes = [tuple(map(lane_of, program.instructions)) for program in partitioned.programs]
        self._ticks = [tuple([each.tick for each in p.instructions]) for p in partitioned.programs]
        width = LANES * partitioned.workers
        self._shadows = [
            _Shadow(
                [(start, start + b.nbytes) for start, b in zip(offsets, program.buffers, strict=True)],
                width,
            )
            for offsets, program in zip(memory.offsets, partitioned.programs, strict=True)
        ]
        self._waits: list[list[Waits]] = [
            [()] * len(program.instructions) for program in partitioned.programs
        ]
        # known[w][i, l]: the last instruction of lane l that is known to be done once w's instruction i is
        self._known = [
            np.full((len(program.instructions), width), _NEVER, np.int64) for program in partitioned.programs
        ]
        self._last = [_NEVER] * width
        """The last instruction of every lane that has been replayed."""
        self._written_at = [_NEVER] * width
        """The tick of every lane's last write."""

    def run(self) -> Schedule:
        by_tick: dict[int, list[tuple[int, int]]] = {}
        for worker, values in enumerate(self._ticks):
            check_order(self._partitioned.programs[worker])
            for index, now in enumerate(values):
                by_tick.setdefault(now, []).append((worker, index))
        for now in sorted(by_tick):
            for worker, index in by_tick[now]:
                self._set_waits(worker, index)
            for worker, index in by_tick[now]:
                self._record_writes(worker, index)
            for worker, index in by_tick[now]:
                self._record_reads(worker, index, now)
        return Schedule(tuple(map(tuple, self._waits)), tuple(self._lanes), tuple(self._ticks))

    def _lane(self, worker: int, index: int) -> int:
        return LANES * worker + self._lanes[worker][index]

    def _set_waits(self, worker: int, index: int) -> None:
        needed = self._needed(worker, index)
        own = self._lane(worker, index)
        known, previous = self._known[worker][index], self._last[own]
        if previous >= 0:
            np.maximum(known, self._known[worker][previous], out=known)
            known[own] = previous
        self._last[own] = index
        needed[own] = _NEVER
        missing = np.flatnonzero(needed > known).tolist()
        if not missing:
            return
        waits = [(lane // LANES, int(needed[lane]), lane) for lane in missing]
        kept: list[tuple[int, int]] = []
        for other, last, lane in sorted(waits, key=lambda wait: -self._ticks[wait[0]][wait[1]]):
            assert self._ticks[other][last] < self._ticks[worker][index], "a wait must go back in time"
            if last > known[lane]:
                kept.append((other, last))
                np.maximum(known, self._known[other][last], out=known)
                known[lane] = max(known[lane], last)
        self._waits[worker][index] = tuple(sorted(kept))

    def _needed(self, worker: int, index: int) -> npt.NDArray[np.int64]:
        """Return the last instruction of every lane that must have finished before an instruction."""
        instruction = self._partitioned.programs[worker].instructions[index]
        needed = np.full(len(self._last), _NEVER, np.int64)
        shadow = self._shadows[worker]
        for buffer in writes(instruction):
            span = shadow.span(buffer)
            if span.start < span.stop:
                np.maximum(needed, shadow.used[:, span].max(axis=1), out=needed)
        for owner, buffer in reads(worker, instruction):
            shadow, span = self._shadows[owner], self._shadows[owner].span(buffer)
            if span.start < span.stop:
                lanes = needed[LANES * owner : LANES * (owner + 1)]
                np.maximum(lanes, shadow.written[:, span].max(axis=1), out=lanes)
        return needed

    def _record_writes(self, worker: int, index: int) -> None:
        shadow, lane = self._shadows[worker], self._lanes[worker][index]
        own = LANES * worker + lane
        for buffer in writes(self._partitioned.programs[worker].instructions[index]):
            span = shadow.span(buffer)
            shadow.written[lane, span] = index
            shadow.used[own, span] = index
        self._written_at[own] = self._ticks[worker][index]

    def _record_reads(self, worker: int, index: int, now: int) -> None:
        own = self._lane(worker, index)
        for owner, buffer in reads(worker, self._partitioned.programs[worker].instructions[index]):
            shadow, span = self._shadows[owner], self._shadows[owner].span(buffer)
            if span.start >= span.stop:
                continue
            for lane in range(LANES):
                writer = LANES * owner + lane
                if writer == own or self._written_at[writer] != now:
                    continue
                last = int(shadow.written[lane, span].max())
                if last >= 0 and self._ticks[owner][last] == now:
                    self._refuse(owner, buffer, worker, now)
            shadow.used[own, span] = index

    def _refuse(self, owner: int, buffer: int, reader: int, now: int) -> None:
        operation = operation_at(self._partitioned, now)
        tensor = self._partitioned.graph.tensors[self._partitioned.programs[owner].buffers[buffer].tensor]
        raise ProgramError(
            f"operation '{operation}': worker {reader} reads '{tensor.name}' from worker {owner}, "
            "which writes that memory in the same tick; collect from a partial buffer instead of the home"
        )
