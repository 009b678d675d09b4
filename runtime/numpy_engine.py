"""The NumPy engine: one arena per worker, instructions prepared once, threads that run them.

A worker is an instruction list and an arena. One thread may serve several workers: it runs their
instructions in the order of the clock, in which no instruction waits for a later one, so results, waits and
bytes do not depend on the number of threads. NumPy leaves the interpreter lock only inside large array
operations, hence more threads than processors would only stand in each other's way.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, assert_never

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ..analyzer.region import Region
from ..dataflow.partitioned import Compute, Instruction, MultiFetch, PartitionedGraph, Piece, Reduce
from ..errors import ExecutionError
from ..operators.kernel import Array, KernelCall
from .collectives import Step, Traffic, Transfer, fixed_order_reduce, multi_fetch
from .memory import MemoryPlan
from .offsets import ALIGNMENT_BYTES
from .schedule import Schedule
from .team import StepFailed, StepsHang, Task, Team


class NumpyEngine:
    """Runs a partitioned graph, one iteration per call of `run`.

    `buffers[worker][buffer]` are views of the arenas, in the form of each buffer's region. They start as
    zeros. `threads` is at most the number of workers; by default also at most the number of processors.
    """

    def __init__(
        self,
        partitioned: PartitionedGraph,
        memory: MemoryPlan,
        schedule: Schedule,
        *,
        threads: int | None,
        watchdog_seconds: float,
    ) -> None:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._partitioned = partitioned
        self._watchdog_seconds = watchdog_seconds
        self.threads = min(partitioned.workers, threads or processors)
        self.iterations = 0
        self.buffers = _allocate(partitioned, memory)
        self._traffic = [Traffic() for _ in range(partitioned.workers)]
        self._failure: str | None = None
        self._blas = ThreadpoolController().select(user_api="blas")
        self._blas_threads = max(1, processors // self.threads)
        self._places = _assign(partitioned.workers, self.threads, schedule)
        self._team = Team(self._tasks(schedule), watchdog_seconds)
        self._finalizer = weakref.finalize(self, self._team.close)

    @property
    def fetched_bytes(self) -> int:
        """Bytes copied from one worker to another in the last iteration, counted while copying."""
        return sum(traffic.nbytes for traffic in self._traffic)

    @property
    def failed(self) -> bool:
        """Whether an iteration stopped half way: a worker failed or hung, or the user interrupted."""
        return self._failure is not None

    def run(self) -> None:
        """Run one iteration.

        Raises ExecutionError that names the worker, the operation and the iteration; afterwards, and after an
        interrupt, tensors may be half updated and the engine refuses to run.
        """
        if self._failure is not None:
            raise ExecutionError(f"this executor stopped earlier ({self._failure}); make a new one")
        if not self._finalizer.alive:
            raise ExecutionError("this executor is closed; make a new one")
        for traffic in self._traffic:
            traffic.nbytes = 0
        try:
            with self._blas.limit(limits=self._blas_threads):
                self._team.run()
        except StepFailed as failure:
            worker, index = self._places[failure.thread][failure.step]
            error = failure.__cause__
            self._failure = f"{self._describe(worker, index)}: {type(error).__name__}: {error}"
            raise ExecutionError(self._failure) from error
        except StepsHang as hang:
            stuck = "; ".join(self._describe(*self._places[thread][step]) for thread, step in hang.current)
            self._failure = f"no progress for {self._watchdog_seconds:g} s: {stuck}"
            raise ExecutionError(self._failure) from None
        except BaseException:
            self._failure = f"interrupted in iteration {self.iterations}"
            raise
        self.iterations += 1

    def close(self) -> None:
        """End the threads. The engine cannot run again."""
        self._finalizer()

    def _describe(self, worker: int, index: int) -> str:
        instruction = self._partitioned.programs[worker].instructions[index]
        operation = self._partitioned.graph.operations[instruction.operation]
        return (
            f"worker {worker}, operation '{operation.name}' ({type(instruction).__name__}), "
            f"iteration {self.iterations}"
        )

    def _tasks(self, schedule: Schedule) -> list[list[Task]]:
        """Every thread's steps, with the waits of its workers turned into waits between threads."""
        position = {
            place: (thread, number)
            for thread, places in enumerate(self._places)
            for number, place in enumerate(places)
        }
        tasks: list[list[Task]] = []
        for thread, places in enumerate(self._places):
            known = [0] * self.threads
            own: list[Task] = []
            for worker, index in places:
                needed: dict[int, int] = {}
                for wait in schedule.waits[worker][index]:
                    other, number = position[wait]
                    if other != thread and number + 1 > max(known[other], needed.get(other, 0)):
                        needed[other] = number + 1
                for other, count in needed.items():
                    known[other] = count
                own.append(Task(self._prepare(worker, index), tuple(needed.items())))
            tasks.append(own)
        return tasks

    def _prepare(self, worker: int, index: int) -> Step:
        instruction = self._partitioned.programs[worker].instructions[index]
        try:
            return self._prepare_instruction(worker, instruction)
        except Exception as error:
            place = self._describe(worker, index)
            raise ExecutionError(f"{place}, in preparation: {type(error).__name__}: {error}") from error

    def _prepare_instruction(self, worker: int, instruction: Instruction) -> Step:
        match instruction:
            case MultiFetch():
                transfers = self._transfers(worker, instruction.target, instruction.pieces)
                return multi_fetch(transfers, self._traffic[worker])
            case Reduce():
                terms = [self._transfers(worker, instruction.target, part) for part in instruction.parts]
                return fixed_order_reduce(instruction.reducer, terms, self._traffic[worker])
            case Compute():
                bound = self._partitioned.graph.operations[instruction.operation].bound
                return bound.prepare(self._kernel_call(worker, instruction))
            case _:
                assert_never(instruction)

    def _transfers(self, worker: int, target: int, pieces: tuple[Piece, ...]) -> list[Transfer]:
        return [
            Transfer(
                self._view(piece.worker, piece.buffer, piece.region),
                self._view(worker, target, piece.region),
                piece.worker != worker,
            )
            for piece in pieces
        ]

    def _kernel_call(self, worker: int, instruction: Compute) -> KernelCall:
        bound = self._partitioned.graph.operations[instruction.operation].bound
        inputs: dict[str, Array] = {}
        regions: dict[str, Region] = {}
        names = bound.description.tensor_names
        for name, buffer, region in zip(names, instruction.inputs, instruction.input_regions, strict=True):
            if buffer is not None and region is not None:
                inputs[name] = self._view(worker, buffer, region)
                regions[name] = region
        return KernelCall(
            bound=bound,
            box=dict(zip(bound.variables, instruction.box, strict=True)),
            inputs=inputs,
            regions=regions,
            outputs=tuple(self.buffers[worker][buffer] for buffer in instruction.outputs),
        )

    def _view(self, worker: int, buffer: int, region: Region) -> Array:
        """The part of a buffer that holds `region` of its tensor."""
        held = self._partitioned.programs[worker].buffers[buffer].region
        place: list[Any] = [Ellipsis]  # so that a tensor without dimensions gives a view too
        for (lower, upper), (start, _) in zip(region, held, strict=True):
            place.append(slice(lower - start, upper - start))
        view: Array = self.buffers[worker][buffer][tuple(place)]
        return view


def _allocate(partitioned: PartitionedGraph, memory: MemoryPlan) -> list[list[Array]]:
    """One zeroed arena per worker, and every buffer's view of it."""
    views: list[list[Array]] = []
    for program, offsets in zip(partitioned.programs, memory.offsets, strict=True):
        arena_bytes = memory.arena_bytes[program.worker]
        try:
            block = np.zeros(arena_bytes + ALIGNMENT_BYTES, np.uint8)
        except MemoryError:
            raise ExecutionError(
                f"worker {program.worker}: no memory for its arena of {arena_bytes} bytes; use more workers "
                "or a smaller batch"
            ) from None
        start = -block.ctypes.data % ALIGNMENT_BYTES
        arena = block[start : start + arena_bytes]
        views.append(
            [
                arena[offset : offset + buffer.nbytes]
                .view(partitioned.graph.tensors[buffer.tensor].dtype)
                .reshape([upper - lower for lower, upper in buffer.region])
                for offset, buffer in zip(offsets, program.buffers, strict=True)
            ]
        )
    return views


def _assign(workers: int, threads: int, schedule: Schedule) -> list[list[tuple[int, int]]]:
    """For every thread its (worker, instruction index) pairs in the order of the clock.

    Neighbouring workers share a thread: they are the ones that the last steps of the partition split.
    """
    places: list[list[tuple[int, int]]] = [[] for _ in range(threads)]
    for worker in range(workers):
        own = places[worker * threads // workers]
        own.extend((worker, index) for index in range(len(schedule.ticks[worker])))
    for own in places:
        own.sort(key=lambda place: (schedule.ticks[place[0]][place[1]], place))
    return places
