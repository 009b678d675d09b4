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

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from ..errors import ProgramError
from ..support.gc_pause import gc_paused
from .clock import check_order, operation_at, reads, writes
from .memory import MemoryPlan
from .program import Lane, PartitionedGraph, lane_of

Waits = tuple[tuple[int, int], ...]
LaneOf = tuple[int, Lane]
"""A worker and one of its lanes."""

LANES = len(Lane)

_NEVER = -1
_OWN = sys.maxsize

_Event = tuple[int, int, int, npt.NDArray[np.int64]]
"""An instruction that has been replayed: its tick, its lane, its index, and what is done before it.

The last is, for each lane, the index of its last instruction that is done; `_OWN` for the event's own lane.
"""

_START: _Event = (_NEVER, 0, _NEVER, np.zeros(0, np.int64))


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


@dataclass(slots=True)
class _Cell:
    """Bytes of an arena that the same instructions touched."""

    stop: int
    """The address after the last byte."""

    writer: _Event = _START
    """The last instruction that wrote them."""

    readers: dict[int, _Event] = field(default_factory=dict)
    """The last instruction of each lane that has read them since."""


class _Shadow:
    """Who touched which bytes of one worker's arena."""

    def __init__(self, bounds: Sequence[tuple[int, int]]) -> None:
        self._bounds = bounds
        self._starts = [0]
        """The addresses where cells begin, in order. The cells tile the arena."""
        self._at = {0: _Cell(sys.maxsize)}
        """The cell that begins at an address."""

    def cells(self, buffer: int) -> list[_Cell]:
        """Return the cells of a buffer, none if it is empty."""
        start, stop = self._bounds[buffer]
        cell = self._at.get(start)
        if cell is not None and cell.stop == stop:
            return [cell]
        if start == stop:
            return []
        return [self._at[place] for place in self._starts[self._cut(start) : self._cut(stop)]]

    def join(self, buffer: int) -> list[_Cell]:
        """Make one cell of a buffer's cells, with the history of the first; return it, nothing if empty."""
        cells = self.cells(buffer)
        if len(cells) > 1:
            start, cells[0].stop = self._bounds[buffer]
            first = bisect_left(self._starts, start) + 1
            for place in self._starts[first : first + len(cells) - 1]:
                del self._at[place]
            del self._starts[first : first + len(cells) - 1]
        return cells[:1]

    def _cut(self, place: int) -> int:
        """Return the number of the cell that begins at a place, after cutting the one that lies across it."""
        number = bisect_left(self._starts, place)
        if place not in self._at:
            across = self._at[self._starts[number - 1]]
            self._starts.insert(number, place)
            self._at[place] = _Cell(across.stop, across.writer, across.readers.copy())
            across.stop = place
        return number


@gc_paused()
def schedule(partitioned: PartitionedGraph, memory: MemoryPlan) -> Schedule:
    """Return every instruction's waits. Raises ProgramError if two lanes race for memory in one tick."""
    return _Scheduler(partitioned, memory).run()


class _Scheduler:
    """Replays all instructions in the order of the clock over a shadow of every arena.

    An instruction that writes waits for all that touched the memory before. So whoever waits for it needs to
    wait for none of them, and the shadow keeps only what was done since.
    """

    def __init__(self, partitioned: PartitionedGraph, memory: MemoryPlan) -> None:
        self._partitioned = partitioned
        self._instructions = [program.instructions for program in partitioned.programs]
        self._lanes = [tuple(map(lane_of, program.instructions)) for program in partitioned.programs]
        self._ticks = [tuple([each.tick for each in p.instructions]) for p in partitioned.programs]
        self._shadows = [
            _Shadow([(start, start + b.nbytes) for start, b in zip(offsets, program.buffers, strict=True)])
            for offsets, program in zip(memory.offsets, partitioned.programs, strict=True)
        ]
        self._waits: list[list[Waits]] = [
            [()] * len(program.instructions) for program in partitioned.programs
        ]
        width = LANES * partitioned.workers
        done = np.full((width, width), _NEVER, np.int64)
        np.fill_diagonal(done, _OWN)
        self._done = list(done)
        """For each lane, what is done before its next event."""
        self._known = done.tolist()
        """The same as lists, whose elements are faster to read."""

    def run(self) -> Schedule:
        for program in self._partitioned.programs:
            check_order(program)
        for now, places in self._by_tick():
            replayed = [self._replay(worker, index, now) for worker, index in places]
            for event, _, written in replayed:
                for cell in written:
                    cell.writer = event
                    cell.readers = {}
            for event, read, _ in replayed:
                self._record_reads(event, read)
        return Schedule(tuple(map(tuple, self._waits)), tuple(self._lanes), tuple(self._ticks))

    def _by_tick(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield every tick in order, with the (worker, index) of its instructions."""
        counts = list(map(len, self._ticks))
        ticks = np.array([tick for own in self._ticks for tick in own], np.int64)
        order = ticks.argsort(kind="stable")
        workers = np.repeat(np.arange(len(counts)), counts)
        indices = np.arange(len(ticks)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = zip(workers[order].tolist(), indices[order].tolist(), strict=True)
        timed = zip(ticks[order].tolist(), places, strict=True)
        for now, group in groupby(timed, key=itemgetter(0)):
            yield now, [place for _, place in group]

    def _replay(self, worker: int, index: int, now: int) -> tuple[_Event, list[_Cell], list[_Cell]]:
        """Set an instruction's waits. Return it as an event, and the cells that it reads and writes."""
        instruction = self._instructions[worker][index]
        own = LANES * worker + self._lanes[worker][index]
        known = self._known[own]
        read: list[_Cell] = []
        written: list[_Cell] = []
        missing: dict[int, _Event] = {}
        for owner, buffer in reads(worker, instruction):
            for cell in self._shadows[owner].cells(buffer):
                read.append(cell)
                _, lane, last, _ = cell.writer
                if last > known[lane] and (lane not in missing or last > missing[lane][2]):
                    missing[lane] = cell.writer
        shadow = self._shadows[worker]
        for buffer in writes(instruction):
            cells = shadow.cells(buffer)
            for cell in cells:
                for event in (cell.writer, *cell.readers.values()):
                    _, lane, last, _ = event
                    if last > known[lane] and (lane not in missing or last > missing[lane][2]):
                        missing[lane] = event
            written += cells if len(cells) == 1 else shadow.join(buffer)
        if missing:
            self._wait(worker, index, own, sorted(missing.values(), key=itemgetter(0), reverse=True))
        return (now, own, index, self._done[own]), read, written

    def _wait(self, worker: int, index: int, own: int, missing: list[_Event]) -> None:
        """Let an instruction wait for events, the latest first: for the fewest from which all follow."""
        assert missing[0][0] < self._ticks[worker][index], "a wait must go back in time"
        done = self._done[own].copy()
        kept: list[tuple[int, int]] = []
        for _, lane, last, before in missing:
            if last > done[lane]:
                kept.append((lane // LANES, last))
                np.maximum(done, before, out=done)
                done[lane] = last
        self._waits[worker][index] = tuple(sorted(kept))
        self._done[own], self._known[own] = done, done.tolist()

    def _record_reads(self, event: _Event, read: list[_Cell]) -> None:
        now, own, index, _ = event
        for cell in read:
            if cell.writer[0] == now and cell.writer[1] != own:
                self._refuse(own // LANES, index, cell)
            cell.readers[own] = event

    def _refuse(self, worker: int, index: int, raced: _Cell) -> None:
        instruction = self._instructions[worker][index]
        owner, buffer = next(
            (owner, buffer)
            for owner, buffer in reads(worker, instruction)
            if any(cell is raced for cell in self._shadows[owner].cells(buffer))
        )
        now = instruction.tick
        operation = operation_at(self._partitioned, now)
        tensor = self._partitioned.graph.tensors[self._partitioned.programs[owner].buffers[buffer].tensor]
        raise ProgramError(
            f"operation '{operation}': worker {worker} reads '{tensor.name}' from worker {owner}, "
            "which writes that memory in the same tick; collect from a partial buffer instead of the home"
        )
