"""The NumPy engine: one arena per worker, instructions prepared once, threads that run them.

A worker is an instruction list and an arena. One thread may serve several lanes of several workers. It runs
their instructions in the order of the clock, in which no instruction waits for a later one, so results, waits
and bytes do not depend on the number of threads. NumPy releases the interpreter lock only inside large array
operations, so more threads than processors would only hinder each other. With more threads than workers, the
others run transfers next to computations.

Assumes: the offsets of `programs.memory` and the waits of `programs.schedule` fit the programs; neither is
checked again. Guarantees: every wait is kept, terms are combined in the order of the instruction, and a run
that fails stops all workers.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..errors import ExecutionError
from ..operators.kernels.kernel import Array
from ..operators.kernels.workspace import Scratch
from ..operators.native.asked import is_asked
from ..operators.native.call_list import joined
from ..programs.memory import MemoryPlan
from ..programs.program import Lane, PartitionedGraph
from ..programs.schedule import LaneOf, Schedule
from ..support.processors import processors
from .blas_threads import limited, loaded_blas, threads_of
from .collectives import Step
from .engine import CLOSED, OneProcess, Watch
from .guard_bands import GuardBands
from .nan_watch import watched
from .noted_arrivals import NotedArrivals
from .preparation import Buffers, PreparedSteps, allocate, buffers_in, place_of, prepare
from .step_threads import StepFailed, StepsClosed, StepsHang, Team
from .thread_tasks import PlacedStep, thread_tasks
from .update_gate import UpdateGate


class StandIns(Protocol):
    """Workers of other processes, as the programs of this process have them: their steps are messages."""

    @property
    def local(self) -> Sequence[int]:
        """Return the workers of this process."""
        ...

    @property
    def first(self) -> int:
        """Return the number of the first stand-in; they are numbered after all workers."""
        ...

    def lanes(self) -> list[list[LaneOf]]:
        """Return the lanes of each thread that moves messages."""
        ...

    def prepare(self, buffers: Buffers, arenas: Sequence[Array]) -> Mapping[int, PreparedSteps]:
        """Return the steps of every stand-in."""
        ...

    def place(self, worker: int, index: int) -> str:
        """Describe an instruction of a stand-in, for errors."""
        ...


class NumpyEngine(OneProcess):
    """Runs a partitioned graph, one iteration per call of `run`.

    `buffers[worker][buffer]` are views of the arenas, in the form of each buffer's region. They start as
    zeros. `threads` is at most the number of lanes; by default at most that of workers and of processors.
    Products inside a kernel use up to `kernel_threads` threads. `places[thread]` lists the (worker, index) of
    the instructions that a thread runs, in order. If there are `stand_ins`, they have threads besides.
    `sharing` is the number of processes that share this machine's processors.

    Measuring instructions costs two calls of the clock for each. Watching for NaN reads all results again.
    Guarding buffers needs a memory plan with bands.
    """

    def __init__(
        self,
        partitioned: PartitionedGraph,
        memory: MemoryPlan,
        schedule: Schedule,
        *,
        watch: Watch,
        threads: int | None,
        stand_ins: StandIns | None = None,
        sharing: int = 1,
    ) -> None:
        self._partitioned = partitioned
        self._watchdog_seconds = watch.watchdog_seconds
        self.local = range(partitioned.workers) if stand_ins is None else stand_ins.local
        default = default_threads(len(self.local))
        served = served_lanes(
            self.local, min(len(Lane) * len(self.local), default if threads is None else threads)
        )
        self.threads = len(served)
        self.iterations = 0
        arenas = allocate(partitioned, memory)
        self.buffers = buffers_in(partitioned, memory, arenas)
        self._stand_ins = stand_ins
        messages = {} if stand_ins is None else stand_ins.prepare(self.buffers, arenas)
        scratch = shared_scratch(served)
        served += [] if stand_ins is None else stand_ins.lanes()
        self._prepared = [
            messages[worker]
            if worker in messages
            else prepare(partitioned, self.buffers, worker, watch.guard_buffers, scratch)
            for worker in range(partitioned.workers)
        ]
        self._guards = {
            worker: GuardBands(partitioned, memory, arenas, worker)
            for worker in (self.local if watch.guard_buffers else ())
        }
        self._gate = UpdateGate(partitioned)
        if watch.note_arrivals and stand_ins is not None:
            raise ExecutionError(
                "the order in which gradients arrive is noted within one process; replay a log of arrivals "
                "in several"
            )
        self._arrivals = NotedArrivals(partitioned, self.buffers) if watch.note_arrivals else None
        self._steps = [self._steps_of(worker, watch) for worker in range(partitioned.workers)]
        self._traffic = [prepared.traffic for prepared in self._prepared]
        self._failure: str | None = None
        self._blas = loaded_blas()
        allowed = min([processors(), *threads_of(self._blas)])
        self.kernel_threads = max(1, allowed // (self.threads * sharing))
        self.places = [schedule.in_order(lanes) for lanes in served]
        placed = [
            [PlacedStep(place, self._steps[place[0]][place[1]]) for place in places] for places in self.places
        ]
        tasks = thread_tasks(placed, schedule.waits)
        self._team = Team(tasks, watch.watchdog_seconds, joined if is_asked() else None)
        self._finalizer = weakref.finalize(self, self._team.close)

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes copied from one worker to another in the last iteration."""
        return sum(traffic.nbytes for traffic in self._traffic)

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Count the bytes besides each worker's arena: shared scratch and the values that kernels keep."""
        return tuple(prepared.workspace_bytes for prepared in self._prepared)

    @property
    def failed(self) -> bool:
        """Tell whether an iteration stopped halfway: a worker failed or hung, or the user interrupted."""
        return self._failure is not None

    def run(self, updates: bool = True) -> None:
        """Run one iteration. If `updates` is False, skip the parameter updates (for micro-batches).

        Raises ExecutionError that names the worker, the operation and the iteration. Afterwards, and after an
        interrupt, tensors may be half updated, and the engine refuses to run.
        """
        if self._failure is not None:
            raise ExecutionError(f"this executor stopped earlier ({self._failure}); make a new one")
        if not self._finalizer.alive:
            raise ExecutionError("this executor is closed; make a new one")
        self._gate.open = updates
        for traffic in self._traffic:
            traffic.nbytes = 0
        if self._arrivals is not None:
            self._arrivals.begin()
        try:
            with limited(self._blas, self.kernel_threads):
                self._team.run()
        except StepFailed as failure:
            worker, index = self.places[failure.thread][failure.step]
            error = failure.__cause__
            self._failure = f"{self._describe(worker, index)}: {type(error).__name__}: {error}"
            raise ExecutionError(self._failure) from error
        except StepsHang as hang:
            stuck = "; ".join(self._describe(*self.places[thread][step]) for thread, step in hang.current)
            self._failure = f"no progress for {self._watchdog_seconds:g} s: {stuck}"
            raise ExecutionError(self._failure) from None
        except StepsClosed:
            self._failure = f"{CLOSED}, iteration {self.iterations}"
            raise ExecutionError(self._failure) from None
        except BaseException:
            self._failure = f"interrupted in iteration {self.iterations}"
            raise
        self._check_guards()
        if self._arrivals is not None:
            self._arrivals.end()
        self.iterations += 1

    def write(self, worker: int, buffer: int, values: Array) -> None:
        """Fill a buffer with an array of its shape."""
        self.buffers[worker][buffer][...] = values

    def read(self, worker: int, buffer: int) -> Array:
        """Return the buffer itself, valid until the next iteration."""
        return self.buffers[worker][buffer]

    def close(self) -> None:
        """End the threads. The engine cannot run again."""
        self._finalizer()

    def _steps_of(self, worker: int, watch: Watch) -> Sequence[Step]:
        """Return a worker's instructions, with the watch and the update gate around them."""
        steps: Sequence[Step] = self._prepared[worker].steps
        if self._is_stand_in(worker):
            steps = self._gate.passed(worker, steps)
            return steps if watch.seconds is None else watch.seconds.timed_messages(worker, steps)
        if watch.detect_nan:
            steps = watched(self._partitioned, self.buffers, worker, steps)
        if worker in self._guards:
            steps = self._guards[worker].watched(steps)
        if self._arrivals is not None:
            steps = self._arrivals.watched(worker, steps)
        steps = self._gate.passed(worker, steps)
        return steps if watch.seconds is None else watch.seconds.timed(worker, steps)

    def _check_guards(self) -> None:
        """Raise ExecutionError if an instruction wrote to memory far from its buffers."""
        for worker, guard in self._guards.items():
            if (damage := guard.damage()) is not None:
                place = f"worker {worker}, iteration {self.iterations}"
                self._failure = f"{place}: an operation that does not use this buffer overwrote {damage}"
                raise ExecutionError(self._failure)

    def _is_stand_in(self, worker: int) -> bool:
        return self._stand_ins is not None and worker >= self._stand_ins.first

    def _describe(self, worker: int, index: int) -> str:
        stand_ins = self._stand_ins
        if stand_ins is not None and self._is_stand_in(worker):
            return f"{stand_ins.place(worker, index)}, iteration {self.iterations}"
        return f"{place_of(self._partitioned, worker, index)}, iteration {self.iterations}"


def shared_scratch(served: Sequence[Sequence[LaneOf]]) -> dict[LaneOf, Scratch]:
    """Return the memory of every lane's scratch: one for all lanes of a thread, which runs one at a time."""
    found: dict[LaneOf, Scratch] = {}
    for lanes in served:
        found |= dict.fromkeys(lanes, Scratch())
    return found


def default_threads(workers: int) -> int:
    """Return the number of threads that run workers if nobody chooses it."""
    return min(workers, processors())


def served_lanes(workers: Sequence[int], threads: int) -> list[list[LaneOf]]:
    """Assign the lanes of workers to threads.

    Neighbouring workers share a thread: they are the ones that the last steps of the partition split. With
    at most as many threads as workers, a thread serves both lanes of its workers. Otherwise every worker's
    computations have a thread, and the others share the transfers.
    """
    own = min(threads, len(workers))
    served: list[list[LaneOf]] = [[] for _ in range(threads)]
    for number, worker in enumerate(workers):
        computes = number * own // len(workers)
        transfers = computes if threads == own else own + number * (threads - own) // len(workers)
        served[computes].append((worker, Lane.COMPUTE))
        served[transfers].append((worker, Lane.TRANSFER))
    return served
