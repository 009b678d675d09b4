"""The instructions of one operation, made from its tasks and from what workers hold, as one list of integers.

A block has what `lower` makes for the operation: for each task the inputs that its worker lacks (transfers),
the kernel, and, for holdings that no task computes in place, the transfers that collect or reduce them. An
instruction begins, does its *legs* (its kernel, or a message from each other worker that it reads from), and
finishes.

Instructions are in the order of the clock, so their numbers and those of their legs depend on nothing but the
operation, its tasks and the holdings. Other operations are named by the tensors that join them: a block says
which of its instructions read or write which holding of which tensor that the operation touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from ..programs.program import Lane
from ..support.compiled import Numbers, numbers, plain
from .message_times import MessageTimes
from .part_sets import PartSet, Readings
from .task_sets import TaskSet

Use = tuple[int, int]
"""A tensor that the operation touches, as its place among them, and the number of a holding."""

# The places of a block's integers. Those of `LEGS` and `COUNT` are numbers, the others lead to lists.
COUNT, LEGS = 0, 1
"""The numbers of instructions and of legs."""
BEGIN, FINISH = 2, 3
"""The time that each instruction takes before its legs, and after them."""
LEG_FIRSTS, LEG_TIME, LEG_WAY, LEG_OWNER = 4, 5, 6, 7
"""The first leg of each instruction, and of each leg its time, its way and its instruction."""
NEED_FIRSTS, FOLLOW_FIRSTS = 8, 9
"""For each instruction, where those of the block begin that it needs, and those that need it."""
READ_FIRSTS, WRITE_FIRSTS = 10, 11
"""For each instruction, where the uses begin that it reads, and those that it writes."""
LANE_BEFORE, LANE_AFTER = 12, 13
"""The block's instruction before and after each one on the lane of its worker; -1 if there is none."""
LANES, LANE_ENDS = 14, 15
"""The number of lanes, and for each the lane, its first and its last instruction."""
USES = 16
"""From here on, for each tensor: where the first reader of each holding is, and the writers of all holdings;
0 if the operation does not write the tensor.
"""


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
class OperationBlock:
    """The instructions of one operation."""

    words: Numbers
    """The block as loops read it."""

    count: int
    """The number of instructions."""

    workers: list[int]
    """The worker of each instruction."""

    transfers: list[bool]
    """Whether each instruction is a transfer."""

    sources: list[int]
    """The worker that each message comes from, instruction by instruction."""

    nbytes: list[int]
    """The bytes of each message."""

    legs: int
    """The number of legs."""

    writers: list[list[int]]
    """For each tensor that is touched, the instruction that writes each holding; -1 if none does."""


@dataclass(slots=True)
class _Instruction:
    """An instruction of a block that is being made."""

    tick: int
    """The clock within the operation."""

    worker: int
    """The worker that runs it."""

    transfer: bool
    """Whether it is a transfer."""

    begin: int
    """The time before its legs."""

    finish: int
    """The time after its legs."""

    leg_times: Sequence[int]
    """The time of each leg."""

    leg_ways: Sequence[int]
    """The way of each leg."""

    sources: Sequence[int]
    """The worker that each message comes from."""

    nbytes: Sequence[int]
    """The bytes of each message."""

    needs: list[_Instruction]
    """The instructions of the block that make what it reads."""

    reads: list[Use]
    """The holdings that it reads."""

    writes: list[Use]
    """The holdings that it writes."""

    number: int = -1
    """Its place in the block."""

    followers: list[int] = field(default_factory=list)
    """The places of the instructions that need it."""


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
        self._found: list[_Instruction] = []

    def block(self) -> OperationBlock:
        computed = self._compute(self._fetch())
        tick = max((each.tick for each in computed), default=0) + 1
        for output in range(len(self._tasks.made)):
            tick = self._collect(output, computed, tick)
        return self._flattened()

    def _fetch(self) -> list[tuple[list[_Instruction], list[tuple[int, Use]]]]:
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
        made: dict[tuple[object, ...], _Instruction] = {}
        found = []
        for task, worker in enumerate(tasks.workers):
            transfers: list[_Instruction] = []
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
    ) -> _Instruction:
        """Add a transfer; `elements` are those of the target, needed only if terms are summed."""
        size = self._of.itemsizes[slot]
        begin, end = readings.firsts[reader], readings.firsts[reader + 1]
        passed = (readings.terms + 1) * elements if readings.terms > 1 else 2 * readings.own[reader]
        found = _Instruction(
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

    def _compute(self, inputs: list[tuple[list[_Instruction], list[tuple[int, Use]]]]) -> list[_Instruction]:
        """Add every task; those of one worker follow each other."""
        tasks = self._tasks
        ticks: dict[int, int] = {}
        found = []
        for (transfers, uses), worker, time in zip(inputs, tasks.workers, tasks.nanoseconds, strict=True):
            tick = ticks[worker] = ticks.get(worker, 0) + 1
            reads = list(dict.fromkeys(use for _, use in uses))
            way = self._messages.computing[worker]
            found.append(
                _Instruction(tick, worker, False, 0, 0, (time,), (way,), (), (), transfers, reads, [])
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
        inputs: list[tuple[list[_Instruction], list[tuple[int, Use]]]],
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

    def _collect(self, output: int, computed: list[_Instruction], tick: int) -> int:
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
        makers: list[_Instruction],
        written: dict[int, int],
        tick: int,
        slot: int | None = None,
    ) -> list[_Instruction]:
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

    def _flattened(self) -> OperationBlock:
        """Return all instructions in the order of the clock, in integers."""
        found = sorted(self._found, key=lambda each: (each.tick, each.worker))
        for number, each in enumerate(found):
            each.number = number
        for each in found:
            for needed in each.needs:
                needed.followers.append(each.number)
        words = _Words(USES + 2 * len(self._held))
        words.put(BEGIN, [each.begin for each in found])
        words.put(FINISH, [each.finish for each in found])
        legs = [len(each.leg_times) for each in found]
        owners = [each.number for each, count in zip(found, legs, strict=True) for _ in range(count)]
        words.put(LEG_FIRSTS, [0, *accumulate(legs)])
        words.put(LEG_TIME, [time for each in found for time in each.leg_times])
        words.put(LEG_WAY, [way for each in found for way in each.leg_ways])
        words.put(LEG_OWNER, owners)
        words.put_lists(NEED_FIRSTS, [[needed.number for needed in each.needs] for each in found])
        words.put_lists(FOLLOW_FIRSTS, [each.followers for each in found])
        words.put_lists(READ_FIRSTS, [[n for use in each.reads for n in use] for each in found])
        words.put_lists(WRITE_FIRSTS, [[n for use in each.writes for n in use] for each in found])
        self._put_lanes(words, found)
        writers = self._put_uses(words, found)
        words.listed[COUNT], words.listed[LEGS] = len(found), len(owners)
        return OperationBlock(
            numbers(words.listed),
            len(found),
            [each.worker for each in found],
            [each.transfer for each in found],
            [source for each in found for source in each.sources],
            [nbytes for each in found for nbytes in each.nbytes],
            len(owners),
            writers,
        )

    @staticmethod
    def _put_lanes(words: _Words, found: list[_Instruction]) -> None:
        before, after = [-1] * len(found), [-1] * len(found)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for each in found:
            lane = each.worker * len(Lane) + each.transfer
            if lane in last:
                before[each.number], after[last[lane]] = last[lane], each.number
            first.setdefault(lane, each.number)
            last[lane] = each.number
        words.put(LANE_BEFORE, before)
        words.put(LANE_AFTER, after)
        words.listed[LANES] = len(first)
        words.put(LANE_ENDS, [n for lane in first for n in (lane, first[lane], last[lane])])

    def _put_uses(self, words: _Words, found: list[_Instruction]) -> list[list[int]]:
        readers: list[list[list[int]]] = [[[] for _ in held.home.workers] for held in self._held]
        writers = [[-1] * len(held.home.workers) for held in self._held]
        for each in found:
            for slot, number in each.reads:
                readers[slot][number].append(each.number)
            for slot, number in each.writes:
                writers[slot][number] = each.number
        for slot in range(len(self._held)):
            words.put_lists(USES + 2 * slot, readers[slot])
            if slot >= self._of.inputs:
                words.put(USES + 2 * slot + 1, writers[slot])
        return writers


class _Words:
    """The integers of a block that is being made."""

    def __init__(self, heads: int) -> None:
        self.listed = [0] * heads

    def put(self, place: int, values: Sequence[int]) -> None:
        """Append values, to which the integer at `place` leads."""
        self.listed[place] = len(self.listed)
        self.listed += values

    def put_lists(self, place: int, lists: Sequence[Sequence[int]]) -> None:
        """Append where each list begins, and the end of the last one, and then all lists."""
        self.listed[place] = len(self.listed)
        self.listed += accumulate(map(len, lists), initial=len(self.listed) + len(lists) + 1)
        self.listed += chain.from_iterable(lists)


def _pieces(readings: Readings, reader: int) -> list[int]:
    return readings.pieces[readings.piece_firsts[reader] : readings.piece_firsts[reader + 1]]
