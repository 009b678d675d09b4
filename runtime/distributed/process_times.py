"""Measure the instructions of programs in the processes that run them, and their messages.

Every process runs its workers as in training, for some rounds after a warm-up, and times its instructions by
the clock on the wall, as `instruction_times` does for threads. Sending a message is timed from the moment at
which the sending thread is free and has what it sends, receiving from the first bytes. Three more times are
measured: until a thread goes on when what it waits for has ended; from the end of sending a message until the
other process notices it, if it waits for it; and that of an iteration before its first instruction and after
its last one.

Clocks of machines differ. As much as messages seem to take longer one way, they seem to take less the other
way, so of both ways the mean counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from ...errors import ExecutionError
from ...machines.device_kind import DeviceKind
from ...machines.machine import Level, Machine
from ...machines.profile import Host
from ...programs.instruction_work import TransferWork, message_work
from ...programs.memory import MemoryPlan
from ...programs.process_messages import ProcessMessage, messages_of
from ...programs.program import BufferKind, PartitionedGraph
from ...programs.schedule import schedule
from ...simulator.times import ITERATION, NOTICED
from ..engine import Engine, Watch
from ..instruction_times import MeasuredRound, ProgramTimes, ProgramWork, Work, run_rounds, usual_times
from ..numpy_engine import NumpyEngine
from ..processor import host, machine_name, measure_processor
from ..profiling import ROUNDS, Added, Profiler
from ..step_moments import StepMoments
from ..step_threads import Step
from ..thread_tasks import Place
from .engine import DistributedEngine
from .own_workers import OwnWorkers
from .process_view import ProcessView
from .processes import Processes
from .sockets import SocketTransport
from .wire import Wire

KIND = "process"
NOTICING: Work = (NOTICED, ())
AROUND: Work = (ITERATION, ())
NOWHERE = (-1, -1)
"""The place of work that is asked for without one."""

SHORTEST_SECONDS = 1e-9
"""Times of profiles are longer than nothing."""


class ProcessMoments(StepMoments):
    """When each instruction and each message of this process begins and ends."""

    def __init__(self, view: ProcessView, transport: SocketTransport) -> None:
        super().__init__(view.partitioned)
        self.firsts: dict[Place, float] = {}
        """When the first bytes of each message came."""
        self._transport = transport
        self._senders = {place: message.sender for place, message in view.received()}

    def timed_messages(self, worker: int, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Wrap the steps of a stand-in to note when each begins and ends, and when messages come."""
        return self.timed(worker, [self._awaiting((worker, index), step) for index, step in enumerate(steps)])

    def _awaiting(self, place: Place, step: Step) -> Step:
        sender = self._senders.get(place)
        if sender is None:
            return step

        def run() -> None:
            self._transport.await_message(sender)
            self.firsts[place] = perf_counter()
            step()

        return run


@dataclass
class ProcessHardware:
    """The processes of a run, each of which is a device. All of them call `times` with the same programs."""

    processes: Processes
    engine: str = field(default="processes", init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.processes.transport, SocketTransport) or self.processes.cards:
            raise ExecutionError("times of processes are measured on processors, over the transport tcp")

    @property
    def name(self) -> str:
        return f"{machine_name()}-{self.processes.count}-processes"

    def host(self) -> Host:
        return host()

    def measure(self) -> Machine:
        """Measure this machine, as if its processes were its threads. Messages pass its memory."""
        found = measure_processor()
        count = self.processes.count
        each: DeviceKind = found.kinds[0]
        memory = None if each.memory_bytes is None else each.memory_bytes * len(found.devices) // count
        kind = replace(each, name=KIND, process=True, memory_bytes=memory)
        numbers = tuple(range(count))
        level = Level(KIND, found.levels[0].bytes_per_second)
        names = tuple(f"process{number}" for number in numbers)
        return Machine(self.name, (level,), names, (numbers,), memory, (kind,) * count)

    def threads(self, machine: Machine, workers: int) -> int:
        return self.processes.count

    def check_workers(self, workers: int) -> None:
        """Raise ExecutionError unless the processes run that number of workers."""
        if workers != self.processes.workers:
            raise ExecutionError(
                f"the program has {workers} workers, but the processes run {self.processes.workers}; measure "
                "programs with as many"
            )

    def work(self, program: PartitionedGraph) -> ProgramWork:
        """Return the work of a program's instructions and messages, and that of an iteration."""
        found = ProgramWork.of(program)
        amounts = {**found.amounts, NOTICING: (1,), AROUND: (1,)}
        for message in messages_of(program, self.processes.places):
            for work in _message_works(message):
                amounts[work.kind, work.sizes] = work.amounts
        return ProgramWork(found.places, amounts)

    def times(
        self, program: PartitionedGraph, work: ProgramWork, rounds: int, machine: Machine | None
    ) -> ProgramTimes:
        """Run a program together with all processes, and return the times of its work."""
        if not self.processes.number:
            self.processes.any(True)  # so that all others take part
        runs: list[_MeasuredRun] = []

        def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> Engine:
            runs.append(_MeasuredRun(self.processes, partitioned, memory, watch, work))
            return runs[0].engine

        found = run_rounds(program, make, rounds, lambda: self._joined(runs[0]))
        return usual_times(runs[0].own.kernel_threads, found, work)

    def _joined(self, run: _MeasuredRun) -> MeasuredRound:
        """Return what all processes measured in an iteration, the same in each."""
        said = self.processes.exchange("measure", json.dumps(run.measured()).encode())
        rounds = [json.loads(each) for each in said]
        seconds: dict[Work, list[float]] = defaultdict(list)
        for each in rounds:
            for kind, sizes, times in each["seconds"]:
                seconds[kind, tuple(sizes)] += times
        sent = {number: end for each in rounds for number, end in each["sent"]}
        noticed = [
            first - sent[number]
            for each in rounds
            for number, waits, first in each["received"]
            if waits < sent[number]
        ]
        seconds[NOTICING] = [max(fmean(noticed or [0.0]), SHORTEST_SECONDS)]
        # a process that is not the last to end also waits for the others
        seconds[AROUND] = [max(min(each["around"] for each in rounds), SHORTEST_SECONDS)]
        return MeasuredRound(seconds, [wake for each in rounds for wake in each["wakes"]])


class _MeasuredRun:
    """The engine of this process, whose instructions and messages are timed."""

    def __init__(
        self,
        processes: Processes,
        partitioned: PartitionedGraph,
        memory: MemoryPlan,
        watch: Watch,
        work: ProgramWork,
    ) -> None:
        self._processes = processes
        self._watch = watch
        self._work = work
        self.own: NumpyEngine
        """The engine of the workers of this process."""
        self.engine = _TimedEngine(partitioned, memory, processes, self._make)

    def _make(self, view: ProcessView) -> OwnWorkers:
        transport = self._processes.transport
        assert isinstance(transport, SocketTransport)
        self._view, self._moments = view, ProcessMoments(view, transport)
        self._waits = schedule(view.partitioned, view.memory)
        wire = Wire(view, transport)
        self.own = NumpyEngine(
            view.partitioned,
            view.memory,
            self._waits,
            watch=replace(self._watch, seconds=self._moments),
            threads=None,
            stand_ins=wire,
            sharing=self._processes.local_count,
        )
        return OwnWorkers(self.own, wire)

    def measured(self) -> dict[str, Any]:
        """Return what this process measured in the last iteration, as JSON values."""
        moments, firsts = self._moments.moments, self._moments.firsts
        messages = dict((*self._view.sent(), *self._view.received()))
        found: dict[Work, list[float]] = defaultdict(list)
        wakes: list[float] = []
        threads = self.own.places
        thread_of = {place: thread for thread, places in enumerate(threads) for place in places}
        for thread, places in enumerate(threads):
            free: float | None = None
            for place in places:
                begin, end = moments[place[0]][place[1]]
                awaited = [
                    moments[other][number][1]
                    for other, number in self._waits.waits[place[0]][place[1]]
                    if thread_of[other, number] != thread
                ]
                if place in firsts:
                    free = firsts[place] if free is None else max(free, firsts[place])
                elif free is None or max(awaited, default=free) > free:
                    wakes += [begin - max(awaited)] if awaited else []
                    free = begin
                found[self._work_of(place, messages)].append(end - free)
                free = end
        spans = [moments[worker][index] for places in threads for worker, index in places]
        own_span = max(end for _, end in spans) - min(begin for begin, _ in spans)
        return {
            "seconds": [[kind, sizes, times] for (kind, sizes), times in found.items()],
            "wakes": wakes,
            "around": self.engine.taken_seconds - own_span,
            "sent": [[m.number, moments[place[0]][place[1]][1]] for place, m in self._view.sent()],
            "received": [
                [m.number, moments[place[0]][place[1]][0], firsts[place]]
                for place, m in self._view.received()
            ],
        }

    def _work_of(self, place: Place, messages: Mapping[Place, ProcessMessage]) -> Work:
        message = messages.get(place)
        if message is None:
            return self._work.places[place]
        sent, received = _message_works(message)
        work = sent if message.sender == self._processes.number else received
        return work.kind, work.sizes


class _TimedEngine(DistributedEngine):
    """Notes how long an iteration takes."""

    taken_seconds = 0.0

    def run(self, updates: bool = True) -> None:
        """Run one iteration."""
        begun = perf_counter()
        super().run(updates)
        self.taken_seconds = perf_counter() - begun


def _message_works(message: ProcessMessage) -> tuple[TransferWork, TransferWork]:
    """Return the work of sending and of receiving a message."""
    nbytes = message.nbytes
    sent = message_work(BufferKind.SENT, NOWHERE, len(message.pieces), nbytes)
    return sent, message_work(BufferKind.RECEIVED, NOWHERE, 1, nbytes)


class ProcessProfiler:
    """A machine file of the processes of a run, and the profile next to it, which grows by programs.

    The first process reads and writes the files. All call `add` with the same programs. Raises MachineError
    in the first process, as `Profiler`, and ExecutionError for a transport other than TCP.
    """

    def __init__(self, processes: Processes, path: Path, *, rounds: int = ROUNDS) -> None:
        self._hardware = ProcessHardware(processes)
        self._rounds = rounds
        self.first = None if processes.number else Profiler(path, self._hardware, rounds=rounds)
        """The profiler of the first process; None in the others."""

    def add(self, program: PartitionedGraph) -> Added:
        """Measure a program if some of its work is unknown. In other processes than the first nothing counts
        as gained.
        """
        processes = self._hardware.processes
        self._hardware.check_workers(program.workers)
        if self.first is None:
            work = self._hardware.work(program)
            if processes.any(False):
                self._hardware.times(program, work, self._rounds, None)
            return Added(0, len(work.amounts))
        added = self.first.add(program)
        if not added.measured:
            processes.any(False)
        return added
