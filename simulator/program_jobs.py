"""The jobs of a program: its computations and its transfers.

A computation is one job. A transfer begins with a job, which takes the time to start a kernel. It is followed
by a *message* from each worker that the transfer reads from, and by a last job, which takes the time that the
reader's own memory needs: to copy its own pieces, or to combine the terms of a reduction. Messages occupy the
directions of the links on their path. Messages between workers of one device occupy none, and take the time
to read and to write the bytes there. Workers of one device compute on one lane, which belongs to the device.

Jobs are numbered in the order of the clock: by tick, then worker, then place in the worker's list. A worker's
two lanes keep the order of the list, as engines do. An instruction needs those that wrote what it reads, and
those that read or wrote what it overwrites. With a schedule it also waits for those that used its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ..machines.machine import Machine
from ..programs.program import Compute, Lane, MultiFetch, PartitionedGraph, Reduce
from ..programs.schedule import Schedule
from .jobs import Edges, Jobs
from .times import NANOSECONDS, ComputeTimes
from .ways import Ways

Integers = npt.NDArray[np.int64]
_NONE = -1


class JobKind(IntEnum):
    COMPUTE = 0
    """a kernel"""
    BEGIN = 1
    """the start of a transfer"""
    MESSAGE = 2
    """bytes on their way from another worker"""
    FINISH = 3
    """pieces copied, or terms combined, after the messages"""


@dataclass(frozen=True, slots=True)
class ProgramJobs:
    """The jobs of one iteration, and the part of the programs that each does."""

    jobs: Jobs
    """The jobs, in the order of the clock."""

    kinds: Sequence[int]
    """The JobKind of each job."""

    instructions: Sequence[int]
    """The instruction that each job belongs to, as a place in `order`."""

    sources: Sequence[int]
    """The worker that each message comes from, in the order of the jobs."""

    nbytes: Sequence[int]
    """The bytes of each message, likewise."""

    order: Sequence[tuple[int, int]]
    """The (worker, index) of every instruction, in the order of the clock."""


def program_jobs(
    partitioned: PartitionedGraph, machine: Machine, times: ComputeTimes, schedule: Schedule | None
) -> ProgramJobs:
    """Return the jobs of one iteration. Raises MachineError if no links join two workers' devices, or if the
    machine does not say how fast its devices are.
    """
    order = _clock_order(partitioned)
    built = _Builder(partitioned, machine)
    for worker, index in order:
        instruction = partitioned.programs[worker].instructions[index]
        if isinstance(instruction, Compute):
            built.compute(worker, instruction)
        else:
            built.transfer(worker, instruction)
    return built.result(order, times, schedule)


def _clock_order(partitioned: PartitionedGraph) -> list[tuple[int, int]]:
    """List the (worker, index) of all instructions by tick, worker and index."""
    counts = [len(program.instructions) for program in partitioned.programs]
    ticks = [each.tick for program in partitioned.programs for each in program.instructions]
    workers = np.repeat(np.arange(len(counts)), counts)
    indices = np.concatenate([np.arange(count) for count in counts])
    first = np.argsort(np.array(ticks, np.int64), kind="stable")
    return list(zip(workers[first].tolist(), indices[first].tolist(), strict=True))


class _Builder:
    """Collects what instructions do and need, and makes jobs of it."""

    def __init__(self, partitioned: PartitionedGraph, machine: Machine) -> None:
        self._partitioned = partitioned
        self._machine = machine
        self._itemsizes = [tensor.itemsize for tensor in partitioned.graph.tensors]
        self._ways = Ways(machine, partitioned.workers)
        self._sources: list[int] = []
        """The worker that each message comes from."""
        self._nbytes: list[int] = []
        """The bytes of each message."""
        self._message_ways: list[int] = []
        """The way of each message."""
        self._sent: list[int] = []
        """The number of messages of each instruction; _NONE for computations."""
        self._touched: list[int] = []
        """The bytes that each transfer reads and writes besides its messages; 0 for computations."""
        self._needed: list[int] = []
        """The instructions that instructions need, one instruction after the other."""
        self._needed_counts: list[int] = []
        """The number of instructions that each instruction needs."""
        self._writer = [[_NONE] * len(program.buffers) for program in partitioned.programs]
        """The instruction that last wrote each buffer."""
        self._readers: list[list[list[int] | None]] = [[None] * len(p.buffers) for p in partitioned.programs]
        """The instructions that have read each buffer since."""

    def compute(self, worker: int, instruction: Compute) -> None:
        """Add a computation."""
        number = len(self._sent)
        needed: set[int] = set()
        for buffer in instruction.inputs:
            if buffer is not None:
                self._read(number, worker, buffer, needed)
        self._write(number, worker, instruction.outputs, needed)
        self._sent.append(_NONE)
        self._touched.append(0)

    def transfer(self, worker: int, instruction: MultiFetch | Reduce) -> None:
        """Add a transfer. The pieces of each term cover its target, so the last one has the rest of it."""
        number = len(self._sent)
        target = self._partitioned.programs[worker].buffers[instruction.target]
        itemsize = self._itemsizes[target.tensor]
        parts = instruction.parts if isinstance(instruction, Reduce) else (instruction.pieces,)
        needed: set[int] = set()
        sent: dict[int, int] = {}
        for pieces in parts:
            rest = target.nbytes
            for piece in pieces[:-1]:
                nbytes = itemsize
                for lower, upper in piece.region:
                    nbytes *= upper - lower
                rest -= nbytes
                sent[piece.worker] = sent.get(piece.worker, 0) + nbytes
                self._read(number, piece.worker, piece.buffer, needed)
            for piece in pieces[-1:]:
                sent[piece.worker] = sent.get(piece.worker, 0) + rest
                self._read(number, piece.worker, piece.buffer, needed)
        self._write(number, worker, (instruction.target,), needed)
        own = sent.pop(worker, 0)
        self._touched.append((len(parts) + 1) * target.nbytes if isinstance(instruction, Reduce) else 2 * own)
        self._sent.append(len(sent))
        self._sources += sent
        self._nbytes += sent.values()
        self._message_ways += [self._ways.number(source, worker) for source in sent]

    def _read(self, number: int, worker: int, buffer: int, needed: set[int]) -> None:
        """Note that an instruction reads a buffer, and needs its last writer."""
        needed.add(self._writer[worker][buffer])
        readers = self._readers[worker][buffer]
        if readers is None:
            self._readers[worker][buffer] = [number]
        else:
            readers.append(number)

    def _write(self, number: int, worker: int, buffers: tuple[int, ...], needed: set[int]) -> None:
        """Note what an instruction writes, and that it needs the last writer and all readers since."""
        for buffer in buffers:
            needed.add(self._writer[worker][buffer])
            needed.update(self._readers[worker][buffer] or ())
            self._readers[worker][buffer] = None
            self._writer[worker][buffer] = number
        needed -= {_NONE, number}
        self._needed += needed
        self._needed_counts.append(len(needed))

    def result(
        self, order: Sequence[tuple[int, int]], times: ComputeTimes, schedule: Schedule | None
    ) -> ProgramJobs:
        """Return all jobs. `order` are the instructions that were added."""
        sent = np.array(self._sent, np.int64)
        transfers = sent != _NONE
        ends = np.cumsum(np.where(transfers, sent + 2, 1))
        places = _Places(ends - np.where(transfers, sent + 2, 1), ends - 1)
        count = int(ends[-1]) if order else 0
        kinds = np.full(count, JobKind.MESSAGE)
        kinds[places.firsts] = np.where(transfers, JobKind.BEGIN, JobKind.COMPUTE)
        kinds[places.lasts[transfers]] = JobKind.FINISH
        messages = np.flatnonzero(kinds == JobKind.MESSAGE)
        ways = np.array(self._message_ways, np.int64)
        nanoseconds = np.zeros(count, np.int64)
        nanoseconds[messages] = self._ways.nanoseconds(ways, np.array(self._nbytes, np.int64))
        nanoseconds[places.firsts], nanoseconds[places.lasts] = self._own_times(order, times, transfers)
        way_of_job = np.full(count, _NONE)
        way_of_job[messages] = ways
        workers = np.array([worker for worker, _ in order], np.int64)
        way_of_job[places.firsts[~transfers]] = self._ways.computing[workers[~transfers]]
        lanes = [*self._ways.lanes, ()]  # the last is that of _NONE
        owners = np.repeat(np.arange(len(order)), places.lasts - places.firsts + 1)
        jobs = Jobs(
            nanoseconds.tolist(),
            [lanes[way] for way in way_of_job.tolist()],
            self._ways.lane_names,
            self._needs(places, messages, owners, sent == 0),
            _lane_order(order, places, transfers, schedule),
        )
        return ProgramJobs(jobs, kinds.tolist(), owners.tolist(), self._sources, self._nbytes, order)

    def _own_times(
        self, order: Sequence[tuple[int, int]], times: ComputeTimes, transfers: npt.NDArray[np.bool_]
    ) -> tuple[Integers, Integers]:
        """Return the time of each instruction's first job and that of its last, which may be the same job."""
        workers = np.array([worker for worker, _ in order], np.int64)
        computing = np.array([times.nanoseconds[worker][index] for worker, index in order], np.int64)
        kinds = self._ways.kinds
        starts = np.rint([kind.start_seconds * NANOSECONDS for kind in kinds]).astype(np.int64)
        per_byte = np.array([NANOSECONDS / kind.bytes_per_second for kind in kinds])
        touching = np.rint(self._touched * per_byte[workers]).astype(np.int64)
        return np.where(transfers, starts[workers], computing), np.where(transfers, touching, computing)

    def _needs(
        self, places: _Places, messages: Integers, owners: Integers, silent: npt.NDArray[np.bool_]
    ) -> Edges:
        """Return what jobs need: other instructions before the first, and messages between first and last.

        `silent` are the transfers without messages.
        """
        before = np.array(self._needed, np.int64)
        pairs = [
            (places.lasts[before], np.repeat(places.firsts, self._needed_counts)),
            (places.firsts[owners[messages]], messages),
            (messages, places.lasts[owners[messages]]),
            (places.firsts[silent], places.lasts[silent]),
        ]
        return np.concatenate([np.stack(pair, axis=1) for pair in pairs])


@dataclass(frozen=True, slots=True)
class _Places:
    """The first and the last job of each instruction."""

    firsts: Integers
    lasts: Integers


def _lane_order(
    order: Sequence[tuple[int, int]],
    places: _Places,
    transfers: npt.NDArray[np.bool_],
    schedule: Schedule | None,
) -> Edges:
    """Return the order that every worker's lanes keep, and the waits of the schedule."""
    lanes = np.array([worker for worker, _ in order], np.int64) * len(Lane) + transfers
    by_lane = np.argsort(lanes, kind="stable")
    earlier, later = by_lane[:-1], by_lane[1:]
    same = lanes[earlier] == lanes[later]
    pairs = [np.stack([places.lasts[earlier[same]], places.firsts[later[same]]], axis=1)]
    if schedule is not None:
        numbers = {place: number for number, place in enumerate(order)}
        waits = [
            (places.lasts[numbers[awaited]], places.firsts[number])
            for (worker, index), number in numbers.items()
            for awaited in schedule.waits[worker][index]
        ]
        pairs.append(np.array(waits, np.int64).reshape(-1, 2))
    return np.concatenate(pairs)
