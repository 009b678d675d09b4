"""The CUDA engine: every lane's commands in a separate stream, with events if one waits for another.

Commands are issued in the order of the clock, in which no instruction waits for a later one. The whole
iteration, of all workers, is captured once as one graph and launched from then on. If `eager`, it is issued
every time instead, which helps to find mistakes.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, product

import numpy as np

from ...errors import ExecutionError
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import FLAG_BYTES
from ...operators.emit.datatypes import decoded, encoded
from ...operators.kernels.kernel import Array
from ...programs.clock import writes
from ...programs.memory import MemoryPlan
from ...programs.program import Lane, PartitionedGraph
from ...programs.schedule import Schedule
from ..engine import OneProcess, Watch
from ..nan_watch import first_nan
from ..preparation import place_of
from ..update_gate import gated_instructions
from .machine import Bytes, CudaMachine, Event, Graph
from .preparation import arena_views, overflows, prepare


class CudaEngine(OneProcess):
    """Runs a partitioned graph on a machine's cards, one iteration per call of `run`.

    If the watch measures instructions, the engine is eager, and the cards note when each begins and ends. If
    the watch checks results, the engine is eager and waits for every instruction. An error of a card then
    belongs to the instruction that the message names.
    """

    def __init__(
        self,
        partitioned: PartitionedGraph,
        memory: MemoryPlan,
        schedule: Schedule,
        machine: CudaMachine,
        *,
        watch: Watch,
        eager: bool = False,
    ) -> None:
        self._partitioned = partitioned
        self.local = range(partitioned.workers)
        self._machine = machine
        self._watch = watch
        self._eager = eager or watch.seconds is not None or watch.detect_nan
        self._schedule = schedule
        self.iterations = 0
        self._failure: str | None = None
        self._warm: set[bool] = set()
        self._graphs: dict[bool, Graph] = {}
        self._spans: list[tuple[int, int, Event, Event]] = []
        """The worker and index of instructions under way, and the events at their beginning and end."""
        self._order = schedule.in_order(product(range(partitioned.workers), Lane))
        self._awaited = {wait for waits in schedule.waits for each in waits for wait in each}
        machine.require(memory.arena_bytes)
        bases = [machine.allocate(worker, nbytes) for worker, nbytes in enumerate(memory.arena_bytes)]
        self.views = arena_views(partitioned, memory, bases)
        self._prepared = [
            prepare(partitioned, self.views, worker, machine) for worker in range(partitioned.workers)
        ]
        self._gated = gated_instructions(partitioned)
        for worker, prepared in enumerate(self._prepared):
            machine.load(worker, chain.from_iterable(prepared.commands))

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes that commands copy from one worker to another in an iteration."""
        return sum(prepared.fetched_bytes for prepared in self._prepared) if self.iterations else 0

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Count the bytes besides each worker's arena: scratch, flags, and the memory of libraries."""
        return tuple(
            prepared.workspace_bytes + self._machine.library_bytes(worker)
            for worker, prepared in enumerate(self._prepared)
        )

    @property
    def failed(self) -> bool:
        """Tell whether an iteration stopped halfway."""
        return self._failure is not None

    def run(self, updates: bool = True) -> None:
        """Run one iteration. If `updates` is False, skip the parameter updates (for micro-batches).

        Raises ExecutionError that names the worker, the operation and the iteration, as far as the card
        reports them. Afterwards tensors may be half updated, and the engine refuses to run.
        """
        if self._failure is not None:
            raise ExecutionError(f"this executor stopped earlier ({self._failure}); make a new one")
        try:
            if self._eager:
                self._issue(updates)
            else:
                self._launch(updates)
            self._machine.synchronize()
            self._note_times()
        except ExecutionError as error:
            self._failure = f"{error}, iteration {self.iterations}"
            raise ExecutionError(self._failure) from error
        except BaseException:
            self._failure = f"interrupted in iteration {self.iterations}"
            raise
        self._check_flags()
        self.iterations += 1

    def write(self, worker: int, buffer: int, values: Array) -> None:
        """Copy an array of a buffer's shape into the buffer, converted to its type."""
        view = self.views[worker][buffer]
        held = np.empty(view.nbytes, np.uint8)
        placed(held, view)[...] = encoded(values, view.type)
        self._machine.write(worker, view.address, held)

    def read(self, worker: int, buffer: int) -> Array:
        """Copy a buffer to the host."""
        view = self.views[worker][buffer]
        return decoded(placed(self._machine.read(worker, view.address, view.nbytes), view), view.type)

    def close(self) -> None:
        """Release the cards' memory. The engine cannot run again."""
        self._failure = self._failure or "closed"
        self._machine.close()

    def _launch(self, updates: bool) -> None:
        """Launch one graph, captured at the second iteration: libraries' first calls cannot be captured."""
        if updates not in self._warm:
            self._issue(updates)
            self._warm.add(updates)
            return
        if updates not in self._graphs:
            self._graphs[updates] = self._machine.captured(partial(self._issue, updates))
        self._machine.launch(self._graphs[updates])

    def _issue(self, updates: bool) -> None:
        """Put one iteration into the streams."""
        events: dict[tuple[int, int], Event] = {}
        for worker, index in self._order:
            lane = self._schedule.lanes[worker][index]
            for wait in self._schedule.waits[worker][index]:
                self._machine.wait(worker, events[wait], lane)
            if updates or not self._gated[worker][index]:
                self._issue_instruction(worker, index, lane)
            if (worker, index) in self._awaited:
                events[worker, index] = self._machine.record(worker, lane)

    def _issue_instruction(self, worker: int, index: int, lane: Lane) -> None:
        timed = self._watch.seconds is not None
        try:
            begin = self._machine.record(worker, lane, timed=True) if timed else None
            for command in self._prepared[worker].commands[index]:
                self._machine.issue(worker, command, lane)
            if timed:
                self._spans.append((worker, index, begin, self._machine.record(worker, lane, timed=True)))
            if self._watch.detect_nan:
                self._machine.synchronize()
        except ExecutionError as error:
            raise ExecutionError(f"{self._place(worker, index)}: {error}") from error
        if self._watch.detect_nan:
            self._look_for_nan(worker, index)

    def _note_times(self) -> None:
        """Give the times of the iteration's instructions to the watch that asked for them."""
        if self._watch.seconds is not None:
            for worker, index, begin, end in self._spans:
                self._watch.seconds.record(worker, index, self._machine.seconds_between(worker, begin, end))
            self._spans.clear()

    def _look_for_nan(self, worker: int, index: int) -> None:
        program = self._partitioned.programs[worker]
        for buffer in writes(program.instructions[index]):
            held = program.buffers[buffer]
            name = self._partitioned.graph.tensors[held.tensor].name
            found = first_nan(name, self.read(worker, buffer), held.region)
            if found is not None:
                raise ExecutionError(f"{self._place(worker, index)}: {found} is not a number")

    def _check_flags(self) -> None:
        """Raise ExecutionError if a kernel computed an index outside its tensor from data.

        Also raise it if a kernel computed an infinite update from gradients in float16.
        """
        for worker, prepared in enumerate(self._prepared):
            count = len(prepared.flagged)
            if not count:
                continue
            flags = self._machine.read(worker, prepared.flags, count * FLAG_BYTES).view(np.int32)
            for index, flag in zip(prepared.flagged, flags.tolist(), strict=True):
                if flag:
                    place = f"{self._place(worker, index)}, iteration {self.iterations}"
                    self._failure = f"{place}: {self._fault(worker, index)}"
                    raise ExecutionError(self._failure)

    def _fault(self, worker: int, index: int) -> str:
        """Describe the fault that the flag of an instruction stands for."""
        operation = self._partitioned.programs[worker].instructions[index].operation
        if overflows(self._partitioned.graph, operation):
            return (
                "its update is infinite or not a number, because float16 cannot hold gradients beyond 65504; "
                "train with a lower loss_scale or learning rate, or in bfloat16"
            )
        return "an index that was computed from data is not a whole number or lies outside its tensor"

    def _place(self, worker: int, index: int) -> str:
        return place_of(self._partitioned, worker, index)


def placed(held: Bytes, view: DeviceView) -> Array:
    """Return the elements of a dense view, whose bytes the host holds, with the view's strides."""
    array: Array = np.ndarray(view.shape, view.dtype, held, 0, view.strides)
    return array
