"""The CUDA engine: every lane's commands in a separate stream, with events if one waits for another.

Commands are issued in the order of the clock, in which no instruction waits for a later one. Transfers of
one worker at one tick share launches (`joint_transfers`). The whole iteration, of all workers, is captured
once as one graph and launched from then on. If the host moves messages to other processes, computations
between two waits are a graph instead (`compute_runs`). If `eager`, everything is issued every time, which
helps to find mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, product

import numpy as np

from ...errors import ExecutionError
from ...operators.cuda.launch.commands import CardMessage, Exchange
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import FLAG_BYTES
from ...operators.emit.datatypes import decoded, encoded
from ...operators.kernels.kernel import Array
from ...programs.clock import writes
from ...programs.memory import MemoryPlan
from ...programs.program import Compute, Lane, PartitionedGraph
from ...programs.schedule import Schedule
from ..buffer_views import BufferViews
from ..engine import CLOSED, OneProcess, Watch
from ..nan_watch import first_nan
from ..preparation import place_of
from ..thread_tasks import Place
from ..update_gate import gated_instructions
from .compute_runs import compute_runs
from .hosted_iteration import HostedIteration
from .joint_transfers import joint_transfers
from .machine import Bytes, CudaMachine, Event, Graph
from .preparation import NOTHING, PreparedCommands, arena_views, overflows, prepare
from .seats import Seats
from .stand_ins import CardStandIns


class CudaEngine(OneProcess):
    """Runs a partitioned graph on a machine's cards, one iteration per call of `run`.

    If the watch measures instructions, the engine is eager, and the cards note when each begins and ends. If
    the watch checks results, the engine is eager and waits for every instruction. An error of a card then
    belongs to the instruction that the message names. In one of several processes, `stand_ins` are the
    workers of the others, and the machine has one more worker than this process, for messages.
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
        stand_ins: CardStandIns | None = None,
    ) -> None:
        self._partitioned = partitioned
        self._seats = Seats.alone(partitioned.workers) if stand_ins is None else stand_ins.seats
        self.local = self._seats.local
        self._machine = machine
        self._watch = watch
        self._eager = eager or watch.seconds is not None or watch.detect_nan
        self._schedule = schedule
        self._stand_ins = stand_ins
        self.iterations = 0
        self._updates = True
        self._failure: str | None = None
        self._warm: set[bool] = set()
        self._graphs: dict[bool, Graph] = {}
        self._runs: list[tuple[Place, ...]] = []
        """The runs of computations that are issued together, if the host moves messages."""
        self._run_graphs: dict[bool, dict[Place, Graph]] = {}
        """The graphs of runs by their first instruction, for iterations with and without updates."""
        self._events: dict[Place, Event] = {}
        """The events of instructions of this iteration that others wait for."""
        self._spans: list[tuple[int, int, Event, Event]] = []
        """The worker and index of instructions under way, and the events at their beginning and end."""
        self._order = schedule.in_order(product(range(partitioned.workers), Lane))
        self._awaited = {wait for waits in schedule.waits for each in waits for wait in each}
        self.views = arena_views(partitioned, memory, self._allocated(memory))
        messages = {} if stand_ins is None else stand_ins.prepare(self.views, machine)
        self._gated = gated_instructions(partitioned)
        self._host_steps = None if stand_ins is None else stand_ins.host_steps()
        self._groups = list(self._issued_together())
        self._prepared = [self._prepare(worker, messages) for worker in range(partitioned.workers)]
        for worker, prepared in enumerate(self._prepared):
            if prepared.commands:
                machine.load(self._seats.number(worker), chain.from_iterable(prepared.commands))
        self._hosted = self._hosted_iteration()

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes that commands copied from one worker to another in the last iteration."""
        if not self.iterations:
            return 0
        return sum(
            nbytes
            for prepared, gates in zip(self._prepared, self._gated, strict=True)
            for nbytes, gated in zip(prepared.fetched_bytes, gates, strict=True)
            if self._updates or not gated
        )

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Count the bytes besides each worker's arena: scratch, flags, and the memory of libraries."""
        own = self._seats.local
        return tuple(
            prepared.workspace_bytes
            + (self._machine.library_bytes(self._seats.number(worker)) if worker in own else 0)
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
            self._updates = updates
            self._events.clear()
            if self._hosted is not None:
                self._capture_runs()
                self._hosted.run()
            elif self._eager:
                self._issue()
            else:
                self._launch()
            self._machine.synchronize()
            self._note_times()
            if self._failure is not None:
                raise ExecutionError(CLOSED)
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
        self._machine.write(self._seats.number(worker), view.address, held)

    def read(self, worker: int, buffer: int) -> Array:
        """Copy a buffer to the host."""
        view = self.views[worker][buffer]
        held = self._machine.read(self._seats.number(worker), view.address, view.nbytes)
        return decoded(placed(held, view), view.type)

    def close(self) -> None:
        """Release the cards' memory. The engine cannot run again."""
        self._failure = self._failure or "closed"
        if self._hosted is not None:
            self._hosted.close()
        self._machine.close()

    def _allocated(self, memory: MemoryPlan) -> list[int]:
        """Allocate the arenas, and return their addresses."""
        on_host = {} if self._stand_ins is None else self._stand_ins.host_memory(self._machine)
        sizes = [0] * self._machine.workers
        seated = [None if worker in on_host else seat for worker, seat in enumerate(self._seats.numbers)]
        for seat, nbytes in zip(seated, memory.arena_bytes, strict=True):
            if seat is not None:
                sizes[seat] += nbytes
        self._machine.require(sizes)
        return [
            on_host.get(worker, 0) if seat is None else self._machine.allocate(seat, nbytes)
            for worker, (seat, nbytes) in enumerate(zip(seated, memory.arena_bytes, strict=True))
        ]

    def _prepare(self, worker: int, messages: Mapping[int, PreparedCommands]) -> PreparedCommands:
        if worker in messages or worker not in self.local:
            return messages.get(worker, NOTHING)
        groups = [[index for _, index in group] for group in self._groups if group[0][0] == worker]
        placed = BufferViews(self._partitioned, self.views)
        return prepare(placed, worker, self._machine, self._seats, groups)

    def _hosted_iteration(self) -> HostedIteration | None:
        """Return an iteration on several threads, if the host moves messages."""
        stand_ins, steps = self._stand_ins, self._host_steps
        if stand_ins is None or steps is None:
            return None
        sent, received = stand_ins.sent(), stand_ins.received()
        issued = [group for group in self._groups if not self._is_message(group[0])]
        if not self._eager:
            issued = compute_runs(issued, self._schedule, self._awaited)
            self._runs = [run for run in issued if len(run) > 1 and self._lane(run[0]) is Lane.COMPUTE]
        self._awaited |= set(sent)
        self._awaited -= set(received)
        return HostedIteration(
            issued,
            sent,
            received,
            self._schedule.waits,
            issue=self._issue_group,
            finish=self._finish,
            host_steps=steps,
            skips=self._skips,
            described=self._place,
            watchdog_seconds=self._watch.watchdog_seconds,
        )

    def _capture_runs(self) -> None:
        """Capture the graphs of runs at the second iteration."""
        updates = self._updates
        if updates not in self._warm:
            self._warm.add(updates)
        elif updates not in self._run_graphs:
            self._run_graphs[updates] = {
                run[0]: self._machine.captured_lane(
                    partial(self._issue_run, run), self._seats.number(run[0][0]), Lane.COMPUTE
                )
                for run in self._runs
                if not all(map(self._skips, run))
            }

    def _launch(self) -> None:
        """Launch one graph, captured at the second iteration: libraries' first calls cannot be captured."""
        updates = self._updates
        if updates not in self._warm:
            self._issue()
            self._warm.add(updates)
            return
        if updates not in self._graphs:
            self._graphs[updates] = self._machine.captured(self._issue)
        self._machine.launch(self._graphs[updates])

    def _issue(self) -> None:
        """Put one iteration into the streams."""
        for group in self._groups:
            self._issue_group(group)

    def _issue_group(self, group: Sequence[Place]) -> None:
        """Issue an instruction, transfers, or the messages of a tick, after what they wait for."""
        lane, seat = self._lane(group[0]), self._seats.number(group[0][0])
        for worker, index in group:
            for wait in self._schedule.waits[worker][index]:
                if wait in self._awaited:
                    self._machine.wait(seat, self._events[wait], lane)
        graph = self._run_graphs.get(self._updates, {}).get(group[0])
        if graph is not None:
            self._machine.launch(graph, seat, lane)
        elif not self._is_message(group[0]):
            self._issue_run(group)
        elif not self._skips(group[0]):
            self._issue_messages(group)
        for place in group:
            if place in self._awaited:
                self._events[place] = self._machine.record(seat, lane)

    def _issue_run(self, places: Sequence[Place]) -> None:
        """Issue computations, or transfers of which the first one has the commands of all."""
        for place in places:
            if not self._skips(place):
                self._issue_instruction(*place, self._lane(place))

    def _issue_messages(self, group: Sequence[Place]) -> None:
        """Issue what packs the messages of a tick, then those that cards exchange, all together."""
        seat = self._seats.number(group[0][0])
        sent: list[CardMessage] = []
        received: list[CardMessage] = []
        for worker, index in group:
            for command in self._prepared[worker].commands[index]:
                if isinstance(command, Exchange):
                    sent += command.sent
                    received += command.received
                else:
                    self._machine.issue(seat, command, Lane.TRANSFER)
        if sent or received:
            self._machine.issue(seat, Exchange(tuple(sent), tuple(received)), Lane.TRANSFER)

    def _issue_instruction(self, worker: int, index: int, lane: Lane) -> None:
        timed, seat = self._watch.seconds is not None, self._seats.number(worker)
        try:
            begin = self._machine.record(seat, lane, timed=True) if timed else None
            for command in self._prepared[worker].commands[index]:
                self._machine.issue(seat, command, lane)
            if timed:
                self._spans.append((worker, index, begin, self._machine.record(seat, lane, timed=True)))
            if self._watch.detect_nan:
                self._machine.synchronize()
        except ExecutionError as error:
            raise ExecutionError(f"{self._place(worker, index)}: {error}") from error
        if self._watch.detect_nan:
            self._look_for_nan(worker, index)

    def _finish(self, place: Place) -> None:
        """Wait until the cards have done an instruction."""
        self._machine.finish(self._seats.number(place[0]), self._events[place])

    def _is_message(self, place: Place) -> bool:
        return self._stand_ins is not None and place[0] >= self._stand_ins.first

    def _skips(self, place: Place) -> bool:
        """Tell whether an instruction is left out because nothing learns in this iteration."""
        return not self._updates and self._gated[place[0]][place[1]]

    def _lane(self, place: Place) -> Lane:
        """Return the stream of an instruction; all messages keep their order in one."""
        return Lane.TRANSFER if self._is_message(place) else self._schedule.lanes[place[0]][place[1]]

    def _issued_together(self) -> Iterator[tuple[Place, ...]]:
        """Yield all instructions in their order: messages of a tick, and transfers that may be joined."""
        placed = BufferViews(self._partitioned, self.views)
        for _, neighbours in groupby(self._order, self._group_of):
            places = tuple(neighbours)
            if len(places) == 1 or self._is_message(places[0]):
                yield places
            else:
                yield from joint_transfers(places, placed)

    def _group_of(self, place: Place) -> tuple[int, ...]:
        """Return a key, the same for neighbours in the order that may be issued together.

        Transfers stay by themselves if each is watched.
        """
        worker, index = place
        tick, gated = self._schedule.ticks[worker][index], self._gated[worker][index]
        if self._is_message(place):
            return -1, tick, gated
        watched = self._watch.seconds is not None or self._watch.detect_nan
        instruction = self._partitioned.programs[worker].instructions[index]
        if watched or isinstance(instruction, Compute):
            return worker, index
        return worker, tick, gated, self._lane(place)

    def _note_times(self) -> None:
        """Give the times of the iteration's instructions to the watch that asked for them."""
        if self._watch.seconds is not None:
            for worker, index, begin, end in self._spans:
                seat = self._seats.number(worker)
                self._watch.seconds.record(worker, index, self._machine.seconds_between(seat, begin, end))
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
            seat = self._seats.number(worker)
            flags = self._machine.read(seat, prepared.flags, count * FLAG_BYTES).view(np.int32)
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
        if self._stand_ins is not None and self._is_message((worker, index)):
            return self._stand_ins.place(worker, index)
        return place_of(self._partitioned, worker, index)


def placed(held: Bytes, view: DeviceView) -> Array:
    """Return the elements of a dense view, whose bytes the host holds, with the view's strides."""
    array: Array = np.ndarray(view.shape, view.dtype, held, 0, view.strides)
    return array
