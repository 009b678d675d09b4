"""The block of one operation, made from its tasks and from what workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import PlanError
from ..programs.program import Lane
from ..support.compiled import plain
from .blocks import Instruction, OperationBlock, Use, flattened
from .message_times import ElementKind, MessageTimes, Transfers
from .part_sets import PartSet, Readings
from .task_sets import TaskSet

_NONE = -1


@dataclass(frozen=True, slots=True)
class Touched:
    """The versions that an operation touches: those that others make, each once, and those that it makes.

    A version that it reads comes with the versions that it is made from, since it may be held there.
    """

    read: tuple[tuple[int, int], ...]
    """For each tensor of the description that is read its place there, and the place of the version."""

    sources: tuple[int, ...]
    """For each version, the place of the one that it is made from; -1 for a tensor."""

    copies: range
    """The places of the copies that are made for the operation."""

    outputs: range
    """The places of its outputs, which come last."""

    same_storage: tuple[frozenset[int], ...]
    """For each output, the places of the versions whose storage it takes over."""

    elements: tuple[ElementKind, ...]
    """The elements of each version."""


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """Who holds a version. Compared by identity."""

    home: PartSet
    """Between operations."""

    stop: PartSet | None = None
    """Where partial results are reduced on their way home, if they are."""


def build(of: Touched, tasks: TaskSet, held: Sequence[Holdings], messages: MessageTimes) -> OperationBlock:
    """Return the block of an operation; `held` are the holdings of the versions that it touches.

    Raises PlanError if no one holds what a task needs.
    """
    return _Builder(of, tasks, held, messages).block()


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs of a task."""

    transfers: list[Instruction]
    """Those that its worker lacks."""

    uses: list[tuple[int, Use]]
    """The holdings of its worker, each with its place in the description."""


class _Builder:
    def __init__(self, of: Touched, tasks: TaskSet, held: Sequence[Holdings], messages: MessageTimes) -> None:
        self._of = of
        self._tasks = tasks
        self._held = held
        self._messages = messages
        self._found: list[Instruction] = []
        self._tick = 0

    def block(self) -> OperationBlock:
        for slot in self._of.copies:
            self._copy(slot)
        computed = self._compute(self._fetch())
        for output in range(len(self._tasks.made)):
            self._collect(output, computed)
        counts = [len(each.home.workers) for each in self._held]
        return flattened(self._found, counts, self._of.copies.start)

    def _copy(self, slot: int) -> None:
        """Add the transfers that make a copy. A part that its worker holds already is not moved."""
        source, element = self._of.sources[slot], self._of.elements[slot]
        held, copied = self._held[source].home, self._held[slot].home
        if held.pieces.terms == copied.pieces.terms:
            transfers = self._messages.fetched(copied, held, element)
        else:
            transfers = self._messages.collected(held, copied, element)
        readings = transfers.readings
        for number, worker in enumerate(copied.workers):
            if readings.kept[number] == _NONE:
                each = self._transfer(worker, transfers, number)
                each.reads = self._uses(source, readings, number)
                each.writes = [(slot, number)]
        self._tick += 1

    def _use(self, slot: int, number: int) -> Use:
        """Return where a holding is: itself, or a holding that its worker has of what it is made from."""
        source = self._of.sources[slot]
        while source != _NONE:
            held, copied = self._held[source].home, self._held[slot].home
            if held.pieces.terms != copied.pieces.terms:
                break
            kept = self._messages.fetched(copied, held, self._of.elements[slot]).readings.kept[number]
            if kept == _NONE:
                break
            slot, number, source = source, kept, self._of.sources[source]
        return slot, number

    def _uses(self, slot: int, readings: Readings, reader: int) -> list[Use]:
        return [self._use(slot, piece) for piece in _pieces(readings, reader)]

    def _fetch(self) -> list[_Inputs]:
        """Add the transfers of inputs; return what each task reads."""
        of, tasks = self._of, self._tasks
        inputs = []
        for (place, slot), needed in zip(of.read, tasks.needed, strict=True):
            held = self._held[slot].home
            if held.pieces.terms not in (1, needed.pieces.terms):
                raise PlanError(
                    f"it reads a tensor in {held.pieces.terms} terms, but its tasks read "
                    f"{needed.pieces.terms}; give each task the number of the term that it reads, or "
                    f"hold the tensor reduced"
                )
            transfers = self._messages.fetched(needed, held, of.elements[slot])
            inputs.append((place, slot, needed.pieces.regions, transfers))
        made: dict[tuple[object, ...], Instruction] = {}
        found = []
        for task, worker in enumerate(tasks.workers):
            own = _Inputs([], [])
            for place, slot, regions, transfers in inputs:
                readings = transfers.readings
                if readings.kept[task] != _NONE:
                    own.uses.append((place, self._use(slot, readings.kept[task])))
                    continue
                key = worker, slot, regions[task], readings.first_terms[task]
                if key not in made:
                    made[key] = self._transfer(worker, transfers, task)
                    made[key].reads = self._uses(slot, readings, task)
                own.transfers.append(made[key])
            found.append(own)
        return found

    def _transfer(self, worker: int, transfers: Transfers, reader: int) -> Instruction:
        """Add the transfer of a part."""
        readings = transfers.readings
        own = slice(readings.firsts[reader], readings.firsts[reader + 1])
        found = Instruction(
            self._tick,
            worker,
            self._messages.runners[worker][Lane.TRANSFER],
            True,
            transfers.begins[reader],
            transfers.finishes[reader],
            transfers.times[own],
            transfers.ways[own],
            readings.sources[own],
            transfers.nbytes[own],
            transfers.sources[reader],
            [],
            [],
            [],
        )
        self._found.append(found)
        return found

    def _compute(self, inputs: Sequence[_Inputs]) -> list[Instruction]:
        """Add every task; those of one worker follow each other."""
        tasks = self._tasks
        ticks: dict[int, int] = {}
        found = []
        for own, worker, time, source in zip(
            inputs, tasks.workers, tasks.nanoseconds, tasks.sources, strict=True
        ):
            tick = ticks[worker] = ticks.get(worker, self._tick) + 1
            runner, way = self._messages.runners[worker][Lane.COMPUTE], self._messages.computing[worker]
            reads = list(dict.fromkeys(use for _, use in own.uses))
            found.append(
                Instruction(
                    tick,
                    worker,
                    runner,
                    False,
                    0,
                    0,
                    (time,),
                    (way,),
                    (),
                    (),
                    source,
                    own.transfers,
                    reads,
                    [],
                )
            )
        self._found += found
        for output, (slot, made) in enumerate(zip(self._of.outputs, tasks.made, strict=True)):
            home = self._held[slot].home
            if made.pieces.terms != home.pieces.terms:
                continue
            parts = zip(home.workers, home.pieces.regions, plain(home.pieces.term), strict=True)
            free = {part: number for number, part in enumerate(parts)}
            of = made.pieces
            for task, part in enumerate(zip(tasks.workers, of.regions, plain(of.term), strict=True)):
                number = free.pop(part, None)
                if number is not None and not self._is_read(output, task, number, inputs):
                    found[task].writes.append((slot, number))
        self._tick = max(ticks.values(), default=self._tick) + 1
        return found

    def _is_read(self, output: int, task: int, number: int, inputs: Sequence[_Inputs]) -> bool:
        """Tell whether a task must not overwrite a holding, because it or another one of its worker reads it.

        The task itself may read it at the places at which each element is read only when it is written.
        """
        shared = self._of.same_storage[output]
        if not shared:
            return False
        for other in (task, *self._tasks.siblings[task]):
            for place, (slot, held) in inputs[other].uses:
                if slot in shared and held == number and (other != task or place not in self._tasks.in_place):
                    return True
        return False

    def _collect(self, output: int, computed: list[Instruction]) -> None:
        """Add the transfers that fill holdings of an output."""
        slot, made = self._of.outputs[output], self._tasks.made[output]
        held = self._held[slot]
        written = {
            task: number for task, each in enumerate(computed) for at, number in each.writes if at == slot
        }
        if len(written) == len(held.home.workers):
            return
        makers = computed
        if held.stop is not None and made.pieces.terms > held.home.pieces.terms:
            makers = list(self._fill(slot, made, held.stop, computed, {}).values())
            made = held.stop
            self._tick += 1
        for number, each in self._fill(slot, made, held.home, makers, written).items():
            each.writes.append((slot, number))

    def _fill(
        self, slot: int, made: PartSet, wanted: PartSet, makers: list[Instruction], written: dict[int, int]
    ) -> dict[int, Instruction]:
        """Add the transfers that fill parts of a tensor from the parts of `makers`; return them by part.

        `written` are the parts of `makers` that are wanted as they are, each with its number there.
        """
        transfers = self._messages.collected(made, wanted, self._of.elements[slot])
        done = set(written.values())
        found = {}
        for number, worker in enumerate(wanted.workers):
            if number in done:
                continue
            each = found[number] = self._transfer(worker, transfers, number)
            for piece in _pieces(transfers.readings, number):
                if piece in written:
                    each.reads.append((slot, written[piece]))
                else:
                    each.needs.append(makers[piece])
        return found


def _pieces(readings: Readings, reader: int) -> list[int]:
    return readings.pieces[readings.piece_firsts[reader] : readings.piece_firsts[reader + 1]]
