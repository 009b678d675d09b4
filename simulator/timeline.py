"""Time lines: when everything in one iteration runs on a machine, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike

from ..dataflow.graph import Graph
from ..errors import TofuError
from ..machines.machine import Machine
from ..programs.process_programs import ProcessPrograms
from ..programs.program import Lane, PartitionedGraph
from ..support.checked_argument import path_of
from ..support.notebook_display import NotebookDisplay
from ..support.saved_files import save_whole
from ..support.wording import counted
from .deciding_path import deciding_path
from .iteration_jobs import IterationJobs, JobKind
from .jobs import Jobs, Moments, run
from .lane_span import LaneSpan
from .times import NANOSECONDS, Source, SourceShare
from .trace import trace_of


@dataclass(frozen=True, slots=True)
class WorkerTimes:
    """How a worker spends an iteration; the three times add up to that of the iteration."""

    computing_seconds: float
    """Kernels run."""

    moving_seconds: float
    """Transfers run, but no kernel does."""

    waiting_seconds: float
    """Neither runs."""

    @property
    def fractions(self) -> tuple[float, float, float]:
        """Return the three as parts of the iteration, which add up to 1, or to 0 if it takes no time."""
        times = self.computing_seconds, self.moving_seconds, self.waiting_seconds
        whole = sum(times) or 1
        return times[0] / whole, times[1] / whole, times[2] / whole


@dataclass(frozen=True, slots=True)
class OperationTimes:
    """An operation's part in a chain of jobs."""

    operation: str
    """The name of the operation."""

    computing_seconds: float
    """The time of its computations."""

    moving_seconds: float
    """The time of its transfers and messages."""


@dataclass(frozen=True, repr=False)
class Timeline(NotebookDisplay):
    """One iteration of a graph's operations on a machine, in whole nanoseconds."""

    graph: Graph
    """The graph."""

    workers: int
    """The number of workers."""

    program: PartitionedGraph | None
    """The program; None if tasks and holdings were simulated."""

    machine: Machine
    """The machine."""

    times: Source
    """Where the times of instructions come from: the weakest of the sources."""

    time_shares: Mapping[Source, SourceShare]
    """The instructions of each source, and their time; empty if the machine has no profile."""

    work: IterationJobs
    """The jobs of the iteration."""

    moments: Moments
    """When each job is ready, and when it starts."""

    processes: ProcessPrograms | None = None
    """The program with the messages of processes, if those run the workers."""

    around_nanoseconds: int = 0
    """The time of an iteration before its first instruction and after its last one."""

    def __repr__(self) -> str:
        return (
            f"<{self.graph.name} on {counted(self.workers, 'worker')} of {self.machine.name}: "
            f"{self.seconds * 1e3:.3f} ms, {self.times}>"
        )

    @cached_property
    def nanoseconds(self) -> int:
        """The time of one iteration."""
        spent = zip(self.moments.start, self.work.jobs.nanoseconds, strict=True)
        return max((start + time for start, time in spent), default=0) + self.around_nanoseconds

    @property
    def seconds(self) -> float:
        """The time of one iteration."""
        return self.nanoseconds / NANOSECONDS

    @property
    def moved_bytes(self) -> int:
        """The bytes that messages carry between workers."""
        return sum(self.work.nbytes)

    @property
    def compute_seconds(self) -> float:
        """The time in which the worker that computes longest computes."""
        return self._busiest(Lane.COMPUTE)

    @property
    def transfer_seconds(self) -> float:
        """The time in which the worker that transfers longest does so, whether or not it computes as well."""
        return self._busiest(Lane.TRANSFER)

    @property
    def critical_path_seconds(self) -> float:
        """The longest chain of jobs that need each other: the time if every lane served all jobs at once.

        No order of the same jobs, and no machine with more lanes of the same speed, takes less.
        """
        return self._with_infinite_lanes.seconds

    @cached_property
    def critical_path(self) -> tuple[OperationTimes, ...]:
        """That chain by operation, the longest first. It adds up to `critical_path_seconds`."""
        return self._with_infinite_lanes.deciding_path

    @cached_property
    def deciding_path(self) -> tuple[OperationTimes, ...]:
        """A chain of jobs, each of which starts when the one before ends, by operation, the longest first.

        A job waits for the one before because it needs it, or because a lane is occupied. The chain takes the
        whole iteration, so only a change of it can make the iteration shorter.
        """
        spent: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for job in deciding_path(self.work.jobs, self.moments):
            moving = self.work.kinds[job] != JobKind.COMPUTE
            spent[self._operation(job)][moving] += self.work.jobs.nanoseconds[job]
        names = self.graph.operations
        found = [
            OperationTimes(names[number].name, computing / NANOSECONDS, moving / NANOSECONDS)
            for number, (computing, moving) in spent.items()
        ]
        return tuple(sorted(found, key=lambda each: -(each.computing_seconds + each.moving_seconds)))

    @property
    def free_transfer_seconds(self) -> float:
        """The time of one iteration if transfers took no time."""
        pairs = zip(self.work.jobs.nanoseconds, self.work.kinds, strict=True)
        computing = [time if kind == JobKind.COMPUTE else 0 for time, kind in pairs]
        return self._of(replace(self.work.jobs, nanoseconds=computing)).seconds

    @cached_property
    def _with_infinite_lanes(self) -> Timeline:
        return self._of(self.work.jobs.with_infinite_lanes())

    def _of(self, jobs: Jobs) -> Timeline:
        """Return the time line if the jobs of this one were changed."""
        return replace(self, work=replace(self.work, jobs=jobs), moments=run(jobs))

    @cached_property
    def shares(self) -> tuple[WorkerTimes, ...]:
        """How each worker spends the iteration."""
        found = []
        for worker in range(self.workers):
            computing = self._intervals[worker, Lane.COMPUTE]
            moving = self._intervals[worker, Lane.TRANSFER]
            busy = _length(computing)
            hidden = _overlap(computing, moving)
            exposed = _length(moving) - hidden
            rest = self.nanoseconds - busy - exposed
            found.append(WorkerTimes(busy / NANOSECONDS, exposed / NANOSECONDS, rest / NANOSECONDS))
        return tuple(found)

    @property
    def bound_seconds(self) -> float:
        """The longer one of the critical path and the time of the busiest lane, a device or a link.

        No order of the same jobs takes less.
        """
        return max(self.critical_path_seconds, self.busiest_lane_seconds)

    @cached_property
    def busiest_lane_seconds(self) -> float:
        """The time in which the busiest lane is occupied; no order of the same jobs takes less."""
        loads = [0] * len(self.work.jobs.lane_names)
        computing = [0] * self.workers
        for job, time in enumerate(self.work.jobs.nanoseconds):
            for lane in self.work.jobs.lanes[job]:
                loads[lane] += time
            if self.work.kinds[job] == JobKind.COMPUTE:
                computing[self._worker(job)] += time
        return (max([*loads, *computing], default=0) + self.around_nanoseconds) / NANOSECONDS

    @cached_property
    def lanes(self) -> Mapping[str, tuple[LaneSpan, ...]]:
        """All spans of each lane, in order: lanes of workers, of shared devices, and directions of links."""
        found: dict[str, list[LaneSpan]] = {
            f"worker {worker} {lane.name.lower()}": [] for worker in range(self.workers) for lane in Lane
        }
        helpers = () if self.processes is None else self.processes.helpers
        parts = [f"process {each.process} {each.part}" for each in helpers]
        found |= {name: [] for name in (*parts, *self.work.jobs.lane_names)}
        for job, span, lanes in self._spans():
            if self.work.kinds[job] != JobKind.MESSAGE:
                lane = Lane.COMPUTE if span.kind == "compute" else Lane.TRANSFER
                of_worker = span.worker < self.workers
                name = f"worker {span.worker} {lane.name.lower()}"
                found[name if of_worker else parts[span.worker - self.workers]].append(span)
            for number in lanes:
                found[self.work.jobs.lane_names[number]].append(span)
        return {
            name: tuple(sorted(spans, key=lambda span: (span.start_nanoseconds, span.end_nanoseconds)))
            for name, spans in found.items()
        }

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the lanes in Chrome's trace format, which https://ui.perfetto.dev and chrome://tracing open.

        Raises TofuError if the file cannot be written.
        """
        save_whole(path_of(path, "path", TofuError), trace_of(self.lanes), "the trace")

    def _spans(self) -> Iterable[tuple[int, LaneSpan, Sequence[int]]]:
        """Yield the last job of each span, the span, and the directions of links that it occupies."""
        names = [operation.name for operation in self.graph.operations]
        messages = zip(self.work.sources, self.work.nbytes, strict=True)
        begun: dict[int, int] = {}
        moved: dict[int, int] = {}
        for job, (kind, start, time, lanes) in enumerate(
            zip(
                self.work.kinds,
                self.moments.start,
                self.work.jobs.nanoseconds,
                self.work.jobs.lanes,
                strict=True,
            )
        ):
            worker, name = self._worker(job), names[self._operation(job)]
            instruction = self.work.instructions[job]
            match kind:
                case JobKind.COMPUTE:
                    yield job, LaneSpan("compute", name, worker, start, start + time, worker, 0), lanes
                case JobKind.BEGIN:
                    begun[instruction], moved[instruction] = start, 0
                case JobKind.MESSAGE:
                    source, nbytes = next(messages)
                    moved[instruction] += nbytes
                    yield job, LaneSpan("message", name, worker, start, start + time, source, nbytes), lanes
                case JobKind.FINISH:
                    since, carried = begun[instruction], moved[instruction]
                    yield job, LaneSpan("transfer", name, worker, since, start + time, worker, carried), lanes
                case JobKind.WAKE:
                    pass

    def _worker(self, job: int) -> int:
        return self.work.workers[self.work.instructions[job]]

    def _operation(self, job: int) -> int:
        return self.work.operations[self.work.instructions[job]]

    @cached_property
    def _intervals(self) -> dict[tuple[int, Lane], list[tuple[int, int]]]:
        """When each lane of a worker is occupied, in nanoseconds, in order."""
        found: dict[tuple[int, Lane], list[tuple[int, int]]] = {
            (worker, lane): [] for worker in range(self.workers) for lane in Lane
        }
        for _, span, _ in self._spans():
            if span.kind != "message" and span.worker < self.workers:
                lane = Lane.COMPUTE if span.kind == "compute" else Lane.TRANSFER
                found[span.worker, lane].append((span.start_nanoseconds, span.end_nanoseconds))
        return found

    def _busiest(self, lane: Lane) -> float:
        loads = [_length(self._intervals[worker, lane]) for worker in range(self.workers)]
        return max(loads, default=0) / NANOSECONDS


def _length(intervals: Sequence[tuple[int, int]]) -> int:
    return sum(end - start for start, end in intervals)


def _overlap(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> int:
    """Return the time that two lists of intervals share, each in order and disjoint."""
    shared, one, other = 0, 0, 0
    while one < len(first) and other < len(second):
        shared += max(0, min(first[one][1], second[other][1]) - max(first[one][0], second[other][0]))
        if first[one][1] <= second[other][1]:
            one += 1
        else:
            other += 1
    return shared
