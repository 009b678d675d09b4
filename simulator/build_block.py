"""The block of one operation, made from its tasks and from what workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from .blocks import Instruction, OperationBlock, Use, flattened
from .compiled import plain
from .message_times import MessageTimes
from .part_sets import PartSet, Readings
from .task_sets import TaskSet


@dataclass(frozen=True, slots=True)
class Touched:
    """The tensors that an operation touches: those that it reads, each once, and those that it makes."""

    inputs: int
    """The number of those that it reads. They come first."""

    read: tuple[tuple[int, int], ...]
    """For each tensor of the description that is read its place there, and its place among the inputs."""

    same_storage: tuple[frozenset[int], ...]
    """For each output, the inputs whose storage it takes over."""

    itemsizes: tuple[int, ...]
    """The bytes of an element of each tensor."""


def touched(graph: Graph, operation: Operation, tensors: Sequence[int], storage: Sequence[int]) -> Touched:
    """Return how an operation touches `tensors`: those that it reads, each once, and those that it makes.

    `storage` is the tensor whose storage each of them has.
    """
    inputs = len(tensors) - len(operation.outputs)
    return Touched(
        inputs,
        tuple((place, tensors.index(operation.inputs[place])) for place, _ in operation.bound.read_places),
        tuple(
            frozenset(slot for slot in range(inputs) if storage[slot] == storage[output])
            for output in range(inputs, len(tensors))
        ),
        tuple(graph.tensors[tensor].itemsize for tensor in tensors),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """Who holds a tensor. Compared by identity."""

    home: PartSet
    """Between operations."""

    stop: PartSet | None = None
    """Where partial results are reduced on their way home, if they are."""


def build(of: Touched, tasks: TaskSet, held: Sequence[Holdings], messages: MessageTimes) -> OperationBlock:
    """Return the block of an operation; `held` are the holdings of the tensors that it touches.

    Raises PlanError if no one holds what a task needs.
    """
    return _Builder(of, tasks, held, messages).block()


class _Builder:
    def __init__(self, of: Touched, tasks: TaskSet, held: Sequence[Holdings], messages: MessageTimes) -> None:
        self._of = of
        self._tasks = tasks
        self._held = held
        self._messages = messages
        self._found: list[Instruction] = []

    def block(self) -> OperationBlock:
        computed = self._compute(self._fetch())
        tick = max((each.tick for each in computed), default=0) + 1
        for output in range(len(self._tasks.made)):
            tick = self._collect(output, computed, tick)
        counts = [len(each.home.workers) for each in self._held]
        return flattened(self._found, counts, self._of.inputs)

    def _fetch(self) -> list[tuple[list[Instruction], list[tuple[int, Use]]]]:
        """Add the transfers of inputs; return for each task those, and the place and use of what is there."""
        of, tasks = self._of, self._tasks
        inputs = []
        for (place, slot), needed in zip(of.read, tasks.needed, strict=True):
            home = self._held[slot].home
            if home.pieces.terms not in (1, needed.pieces.terms):
                raise PlanError(
                    f"it reads a tensor in {home.pieces.terms} terms, but its tasks read "
                    f"{needed.pieces.terms}; give each task the number of the term that it reads, or "
                    f"hold the tensor reduced"
                )
            inputs.append(
                (place, slot, needed, home, self._messages.fetched(needed, home, of.itemsizes[slot]))
            )
        made: dict[tuple[object, ...], Instruction] = {}
        found = []
        for task, worker in enumerate(tasks.workers):
            transfers: list[Instruction] = []
            uses: list[tuple[int, Use]] = []
            for place, slot, needed, home, (readings, times, ways) in inputs:
                if readings.kept[task] >= 0:
                    uses.append((place, (slot, readings.kept[task])))
                    continue
                term = needed.pieces.term[task] if home.pieces.terms > 1 else 0
                key = worker, slot, needed.pieces.regions[task], term
                if key not in made:
                    made[key] = self._transfer(0, worker, slot, readings, task, times, ways)
                    made[key].reads = [(slot, piece) for piece in _pieces(readings, task)]
                transfers.append(made[key])
            found.append((transfers, uses))
        return found

    def _transfer(
        self,
        tick: int,
        worker: int,
        slot: int,
        readings: Readings,
        reader: int,
        times: list[int],
        ways: list[int],
        elements: int = 0,
    ) -> Instruction:
        """Add a transfer; `elements` are those of the target, needed only if terms are summed."""
        size = self._of.itemsizes[slot]
        begin, end = readings.firsts[reader], readings.firsts[reader + 1]
        passed = (readings.terms + 1) * elements if readings.terms > 1 else 2 * readings.own[reader]
        found = Instruction(
            tick,
            worker,
            True,
            self._messages.starts[worker],
            self._messages.touching(worker, passed * size),
            times[begin:end],
            ways[begin:end],
            readings.sources[begin:end],
            [count * size for count in readings.elements[begin:end]],
            [],
            [],
            [],
        )
        self._found.append(found)
        return found

    def _compute(self, inputs: list[tuple[list[Instruction], list[tuple[int, Use]]]]) -> list[Instruction]:
        """Add every task; those of one worker follow each other."""
        tasks = self._tasks
        ticks: dict[int, int] = {}
        found = []
        for (transfers, uses), worker, time in zip(inputs, tasks.workers, tasks.nanoseconds, strict=True):
            tick = ticks[worker] = ticks.get(worker, 0) + 1
            reads = list(dict.fromkeys(use for _, use in uses))
            way = self._messages.computing[worker]
            found.append(
                Instruction(tick, worker, False, 0, 0, (time,), (way,), (), (), transfers, reads, [])
            )
        self._found += found
        for output, made in enumerate(tasks.made):
            home, slot = self._held[self._of.inputs + output].home, self._of.inputs + output
            if made.pieces.terms != home.pieces.terms:
                continue
            parts = zip(home.workers, home.pieces.regions, plain(home.pieces.term), strict=True)
            free = {part: number for number, part in enumerate(parts)}
            of = made.pieces
            for task, part in enumerate(zip(tasks.workers, of.regions, plain(of.term), strict=True)):
                number = free.pop(part, None)
                if number is not None and not self._is_read(output, task, number, inputs):
                    found[task].writes.append((slot, number))
        return found

    def _is_read(
        self,
        output: int,
        task: int,
        number: int,
        inputs: list[tuple[list[Instruction], list[tuple[int, Use]]]],
    ) -> bool:
        """Tell whether a task must not overwrite a holding, because it or another one of its worker reads it.

        The task itself may read it at the places at which each element is read only when it is written.
        """
        shared = self._of.same_storage[output]
        if not shared:
            return False
        for other in (task, *self._tasks.siblings[task]):
            for place, (slot, held) in inputs[other][1]:
                if slot in shared and held == number and (other != task or place not in self._tasks.in_place):
                    return True
        return False

    def _collect(self, output: int, computed: list[Instruction], tick: int) -> int:
        """Add the transfers that fill holdings of an output; return the next tick."""
        slot = self._of.inputs + output
        held, made = self._held[slot], self._tasks.made[output]
        written = {
            task: number for task, each in enumerate(computed) for at, number in each.writes if at == slot
        }
        if len(written) == len(held.home.workers):
            return tick
        if held.stop is None or made.pieces.terms <= held.home.pieces.terms:
            self._fill(slot, made, held.home, computed, written, tick)
            return tick
        stopped = self._fill(None, made, held.stop, computed, {}, tick, slot)
        self._fill(slot, held.stop, held.home, stopped, {}, tick + 1)
        return tick + 1

    def _fill(
        self,
        target: int | None,
        made: PartSet,
        wanted: PartSet,
        makers: list[Instruction],
        written: dict[int, int],
        tick: int,
        slot: int | None = None,
    ) -> list[Instruction]:
        """Add transfers that fill `wanted` from the parts of `makers`, and write the tensor `target`.

        `written` are the parts that are holdings themselves, each with the number of the holding.
        """
        of = target if slot is None else slot
        assert of is not None
        readings, times, ways = self._messages.collected(made, wanted, self._of.itemsizes[of])
        done = set(written.values())
        found = []
        for number, worker in enumerate(wanted.workers):
            if number in done:
                continue
            each = self._transfer(
                tick, worker, of, readings, number, times, ways, wanted.pieces.elements[number]
            )
            for piece in _pieces(readings, number):
                if piece in written:
                    each.reads.append((of, written[piece]))
                else:
                    each.needs.append(makers[piece])
            if target is not None:
                each.writes.append((target, number))
            found.append(each)
        return found


def _pieces(readings: Readings, reader: int) -> list[int]:
    return readings.pieces[readings.piece_firsts[reader] : readings.piece_firsts[reader + 1]]
