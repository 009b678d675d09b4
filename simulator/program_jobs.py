"""The jobs of a program: its computations and its transfers.

A computation is one job. A transfer begins with a job, which takes the time to start a kernel. It is followed
by a *message* from each worker that the transfer reads from, and by a last job, which takes the time that the
reader's own memory needs: to copy its own pieces, or to combine the terms of a reduction. Messages occupy the
directions of the links on their path. Messages between workers of one device occupy none, and take the time
to read and to write the bytes there. Workers of one device compute on one lane, which belongs to the device.

Jobs are numbered in the order of the clock: by tick, then worker, then place in the worker's list. A worker's
two lanes keep the order of the list, as engines do. If a device serves its workers in turn, all their
instructions keep the order of the clock, and the reader itself copies what messages carry, in turn as well.

An instruction needs those that wrote what it reads, and those that read or wrote what it overwrites. With a
schedule it also waits for those that used its memory. If any of them run elsewhere, and the device takes time
to wake, the instruction begins with a job that waits for those and takes that time.

If messages are given, pieces travel in them. A message belongs to the first transfer that needs a piece of
it, so it is sent then and pays its latency once. The other pieces lie in the reader's memory until they are
copied. Transfers of one tick are served in rounds, so that readers do not all wait for the same sender: in
the first round each reads from the worker after its own, in the next one from the worker after that. Without
messages, each transfer has one from each worker, and those of the first worker are served first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..machines.machine import Machine
from ..programs.messages import Messages, SentPiece
from ..programs.process_programs import ProcessPrograms
from ..programs.program import BufferKind, Compute, Held, MultiFetch, PartitionedGraph, Reduce
from ..programs.schedule import Schedule
from ..support.integers import Integers
from .iteration_jobs import IterationJobs, JobKind
from .jobs import Edges, Jobs
from .rounds import in_rounds
from .times import NANOSECONDS, ComputeTimes, in_proportion
from .ways import Ways

_NONE = -1


def program_jobs(
    partitioned: PartitionedGraph,
    machine: Machine,
    times: ComputeTimes,
    schedule: Schedule | None,
    messages: Messages | None = None,
    processes: ProcessPrograms | None = None,
) -> IterationJobs:
    """Return the jobs of one iteration. `processes` has the program, if processes run it.

    Raises MachineError if no links join two workers' devices, or if the machine does not say how fast its
    devices are.
    """
    order = _clock_order(partitioned)
    built = _Builder(partitioned, machine, times, messages, processes)
    for worker, index in order:
        instruction = partitioned.programs[worker].instructions[index]
        if isinstance(instruction, Compute):
            built.compute(worker, instruction)
        elif isinstance(instruction, MultiFetch) and processes is not None and processes.helper(worker):
            built.message(worker, instruction)
        else:
            built.transfer(worker, index, instruction)
    return built.result(order, schedule)


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

    def __init__(
        self,
        partitioned: PartitionedGraph,
        machine: Machine,
        times: ComputeTimes,
        messages: Messages | None,
        processes: ProcessPrograms | None,
    ) -> None:
        self._partitioned = partitioned
        self._processes = processes
        self._rounds = messages is not None
        """Whether transfers of one tick are served in rounds."""
        self._early: dict[tuple[int, int], list[SentPiece]] = {}
        """The pieces of later transfers that come with each transfer's messages, by worker and index."""
        self._there: set[tuple[int, int, int]] = set()
        """The pieces that came earlier, by worker, index and place."""
        for message in messages or ():
            first = message.pieces[0].instruction
            later = [each for each in message.pieces if each.instruction != first]
            self._early.setdefault((message.reader, first), []).extend(later)
            self._there.update((message.reader, each.instruction, each.place) for each in later)
        self._times = times
        self._itemsizes = [tensor.itemsize for tensor in partitioned.graph.tensors]
        helpers = () if processes is None else processes.helpers
        self._workers = partitioned.workers - len(helpers)
        self._ways = Ways(machine, self._workers, times.wake_nanoseconds, times.notice_nanoseconds, helpers)
        carriers = (n for n, each in enumerate(helpers, self._workers) if each.part is BufferKind.CARRIED)
        self._carriers = np.fromiter(carriers, np.int64)
        self._operations: list[int] = []
        """The operation of each instruction."""
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
        self._operations.append(instruction.operation)
        needed: set[int] = set()
        for buffer in instruction.inputs:
            if buffer is not None:
                self._read(number, worker, buffer, needed)
        self._write(number, worker, instruction.outputs, needed)
        self._sent.append(_NONE)
        self._touched.append(0)

    def transfer(self, worker: int, index: int, instruction: MultiFetch | Reduce) -> None:
        """Add a transfer. The pieces of each term cover its target, so the last one has the rest of it."""
        number = len(self._sent)
        self._operations.append(instruction.operation)
        target = self._partitioned.programs[worker].buffers[instruction.target]
        itemsize = self._itemsizes[target.tensor]
        parts = instruction.parts if isinstance(instruction, Reduce) else (instruction.pieces,)
        needed: set[int] = set()
        sent: dict[int, int] = {}
        place = 0
        for pieces in parts:
            rest = target.nbytes
            for piece in pieces:
                nbytes = rest
                if piece is not pieces[-1]:
                    nbytes = itemsize
                    for lower, upper in piece.region:
                        nbytes *= upper - lower
                    rest -= nbytes
                here = piece.worker >= self._workers or (worker, index, place) in self._there
                source = worker if here else piece.worker
                sent[source] = sent.get(source, 0) + nbytes
                self._read(number, piece.worker, piece.buffer, needed)
                place += 1
        for early in self._early.get((worker, index), ()):
            sent[early.piece.worker] += early.nbytes
            self._read(number, early.piece.worker, early.piece.buffer, needed)
        self._write(number, worker, (instruction.target,), needed)
        own = sent.pop(worker, 0)
        if self._rounds:
            workers = self._partitioned.workers
            sent = {sender: sent[sender] for sender in sorted(sent, key=lambda s: (s - worker) % workers)}
        self._touched.append((len(parts) + 1) * target.nbytes if isinstance(instruction, Reduce) else 2 * own)
        self._sent.append(len(sent))
        self._sources += sent
        self._nbytes += sent.values()
        self._message_ways += [self._ways.number(source, worker) for source in sent]

    def message(self, worker: int, instruction: MultiFetch) -> None:
        """Add a transfer of a helper, which sends, carries or receives a message."""
        number = len(self._sent)
        self._operations.append(instruction.operation)
        target = self._partitioned.programs[worker].buffers[instruction.target]
        needed: set[int] = set()
        for piece in instruction.pieces:
            self._read(number, piece.worker, piece.buffer, needed)
        self._write(number, worker, (instruction.target,), needed)
        carries = target.kind is BufferKind.CARRIED
        self._touched.append(0 if carries else 2 * target.nbytes)
        self._sent.append(int(carries))
        if carries:
            source = instruction.pieces[0].worker
            self._sources.append(source)
            self._nbytes.append(target.nbytes)
            self._message_ways.append(self._ways.number(source, worker))

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

    def result(self, order: Sequence[tuple[int, int]], schedule: Schedule | None) -> IterationJobs:
        """Return all jobs. `order` are the instructions that were added."""
        sent = np.array(self._sent, np.int64)
        transfers = sent != _NONE
        workers = np.array([worker for worker, _ in order], np.int64)
        runners = self._ways.runners[workers, transfers.astype(np.int64)]
        wakes = self._ways.wakes[workers]
        needs = _Waits.of(self._needed_pairs(), runners, wakes)
        waits = _Waits.of(_awaited_pairs(order, schedule, self._processes), runners, wakes)
        woken = needs.woken(len(order)) | waits.woken(len(order))
        places = _Places.of(np.where(transfers, sent + 2, 1) + woken, woken)
        count = int(places.lasts[-1]) + 1 if order else 0
        kinds = np.full(count, JobKind.MESSAGE)
        kinds[places.starts[woken]] = JobKind.WAKE
        kinds[places.firsts] = np.where(transfers, JobKind.BEGIN, JobKind.COMPUTE)
        kinds[places.lasts[transfers]] = JobKind.FINISH
        messages = np.flatnonzero(kinds == JobKind.MESSAGE)
        ways = np.array(self._message_ways, np.int64)
        nanoseconds = np.zeros(count, np.int64)
        nanoseconds[messages] = self._ways.nanoseconds(ways, np.array(self._nbytes, np.int64))
        given = np.array([self._times.nanoseconds[worker][index] for worker, index in order], np.int64)
        self._own_times(nanoseconds, places, workers, given, transfers)
        nanoseconds[places.starts[woken]] = wakes[woken]
        way_of_job = np.full(count, _NONE)
        way_of_job[messages] = ways
        way_of_job[places.firsts[~transfers]] = self._ways.computing[workers[~transfers]]
        lanes = [*self._ways.lanes, ()]  # the last is that of _NONE
        owners = np.repeat(np.arange(len(order)), places.lasts - places.starts + 1)
        silent = sent == 0
        inside = [
            (places.firsts[owners[messages]], messages),
            (messages, places.lasts[owners[messages]]),
            (places.firsts[silent], places.lasts[silent]),
        ]
        jobs = Jobs(
            nanoseconds.tolist(),
            [lanes[way] for way in way_of_job.tolist()],
            self._ways.lane_names,
            _edges(needs.pairs(places), *inside),
            _edges(waits.pairs(places), _lane_order(runners, places)),
        )
        made = IterationJobs(
            jobs,
            kinds.tolist(),
            owners.tolist(),
            workers.tolist(),
            self._operations,
            self._sources,
            self._nbytes,
        )
        if not self._rounds or any(kind.in_turn for kind in self._ways.kinds):
            return made
        ticks = [self._partitioned.programs[worker].instructions[index].tick for worker, index in order]
        return in_rounds(made, np.array(ticks, np.int64), runners)

    def _needed_pairs(self) -> tuple[Integers, Integers]:
        """Return the instructions that others need, and those others."""
        after = np.repeat(np.arange(len(self._sent)), np.array(self._needed_counts, np.int64))
        return np.array(self._needed, np.int64), after

    def _own_times(
        self,
        nanoseconds: Integers,
        places: _Places,
        workers: Integers,
        given: Integers,
        transfers: npt.NDArray[np.bool_],
    ) -> None:
        """Fill in the times of computations, and of the first and last jobs of transfers.

        If the time of a whole transfer is given, its jobs share it.
        """
        kinds = self._ways.kinds
        starts = np.rint([kind.start_seconds * NANOSECONDS for kind in kinds]).astype(np.int64)
        starts[self._carriers] = 0
        per_byte = np.array([NANOSECONDS / kind.bytes_per_second for kind in kinds])
        touching = np.rint(self._touched * per_byte[workers]).astype(np.int64)
        nanoseconds[places.firsts] = np.where(transfers, starts[workers], given)
        nanoseconds[places.lasts] = np.where(transfers, touching, given)
        for number in np.flatnonzero(transfers & (given > 0)).tolist():
            own = slice(places.firsts[number], places.lasts[number] + 1)
            nanoseconds[own] = in_proportion(nanoseconds[own].tolist(), int(given[number]))


def _awaited_pairs(
    order: Sequence[tuple[int, int]], schedule: Schedule | None, processes: ProcessPrograms | None
) -> tuple[Integers, Integers]:
    """Return the instructions that others wait for by the schedule, and those others.

    A schedule is that of the workers. If it lets one wait for a transfer of another process, the worker waits
    until what the transfer reads from it has been sent.
    """
    if schedule is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers = {place: number for number, place in enumerate(order)}
    found = [
        (numbers[each], number)
        for (worker, index), number in numbers.items()
        if worker < len(schedule.waits)
        for awaited in schedule.waits[worker][index]
        for each in _here(awaited, worker, processes)
    ]
    before, after = np.array(found, np.int64).reshape(-1, 2).T
    return before, after


def _here(awaited: Held, worker: int, processes: ProcessPrograms | None) -> Sequence[Held]:
    """Return what a worker waits for in its own process, in place of an instruction anywhere."""
    if processes is None or processes.places[awaited[0]] == processes.places[worker]:
        return (awaited,)
    return processes.sends.get((*awaited, processes.places[worker]), ())


def _edges(*pairs: tuple[Integers, Integers]) -> Edges:
    return np.concatenate([np.stack(pair, axis=1) for pair in pairs])


@dataclass(frozen=True, slots=True)
class _Places:
    """The first and the last job of each instruction."""

    starts: Integers
    """The job that wakes it, or else its first."""

    firsts: Integers
    """Its computation, or the begin of its transfer."""

    lasts: Integers
    """The job after which it has ended."""

    @classmethod
    def of(cls, counts: Integers, woken: npt.NDArray[np.bool_]) -> _Places:
        """Number the jobs of instructions with these counts, the first of which may wake."""
        ends = np.cumsum(counts)
        return cls(ends - counts, ends - counts + woken, ends - 1)


@dataclass(frozen=True, slots=True)
class _Waits:
    """Pairs of instructions of which the second comes after the first."""

    before: Integers
    after: Integers
    wake: npt.NDArray[np.bool_]
    """Whether the second has to be woken, because the first runs elsewhere."""

    @classmethod
    def of(cls, pairs: tuple[Integers, Integers], runners: Integers, wakes: Integers) -> _Waits:
        before, after = pairs
        return cls(before, after, (runners[before] != runners[after]) & (wakes[after] > 0))

    def woken(self, count: int) -> npt.NDArray[np.bool_]:
        """Return which of `count` instructions have to be woken."""
        found = np.zeros(count, bool)
        found[self.after[self.wake]] = True
        return found

    def pairs(self, places: _Places) -> tuple[Integers, Integers]:
        """Return the pairs of jobs: of instructions, and of jobs that wake and the first after them."""
        target = np.where(self.wake, places.starts[self.after], places.firsts[self.after])
        woken = np.unique(self.after[self.wake])
        return (
            np.concatenate([places.lasts[self.before], places.starts[woken]]),
            np.concatenate([target, places.firsts[woken]]),
        )


def _lane_order(runners: Integers, places: _Places) -> tuple[Integers, Integers]:
    """Return the order that every worker's lanes keep, or devices that serve workers in turn."""
    by_runner = np.argsort(runners, kind="stable")
    earlier, later = by_runner[:-1], by_runner[1:]
    same = runners[earlier] == runners[later]
    return places.lasts[earlier[same]], places.firsts[later[same]]
