"""The largest arena of many plans of a graph, without making their programs.

Operations that are alike use memory alike (`memory_use`). A plan puts the uses of its operations one after
the other. Then births, deaths and the buffers that outputs take over follow for all buffers at once.

Guarantees: the buffers are those of `lower`, in the same order, so the arenas are those of `plan_memory`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...dataflow.alike import Integers, numbered
from ...dataflow.graph import Graph, Operation
from ...programs.arena import plan_arena
from ...support.gc_pause import gc_paused
from ..costs.movement import Movements, WorkerRegions
from ..layouts.copies import ReadCopy
from ..layouts.order import in_order
from ..plans.plan import Plan
from .lowering import PlanRegions
from .memory_use import OWN, MemoryUse, WorkerUse, memory_use


class Arenas:
    """The arenas of plans of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._touched = _TouchedTensors.of(graph)
        self._known: dict[tuple[int, ...], _KnownUses] = {}

    @gc_paused()
    def largest(self, plan: Plan, withheld: Sequence[int] = ()) -> int:
        """Return the largest arena of the plan's workers, each with the bytes that are withheld from it.

        Raises PlanError if the plan is not for the graph.
        """
        known = self._known.get(plan.factors)
        if known is None:
            known = self._known[plan.factors] = _KnownUses(plan.workers, plan.factors)
        placed = _PlacedUses(self._touched, known, plan)
        return placed.largest_arena(withheld or (0,) * plan.workers)


@dataclass(frozen=True, slots=True, eq=False)
class _TouchedTensors:
    """The tensors that the operations of a graph touch."""

    graph: Graph
    """The graph."""

    roots: Integers
    """The tensors whose memory the tensors have that operations touch, operation after operation."""

    counts: Integers
    """The number of those of each operation."""

    homes: Integers
    """The tensors that overwrite none."""

    itemsizes: Integers
    """The bytes of an element of those."""

    lasting: npt.NDArray[np.bool_]
    """Which of those are there when an iteration begins, and last beyond it."""

    kept: npt.NDArray[np.bool_]
    """Which of those are there when it ends."""

    @classmethod
    def of(cls, graph: Graph) -> _TouchedTensors:
        """Return the tensors that the operations of a graph touch."""
        own = [tensor for tensor in graph.tensors if tensor.alias is None]
        lasting = {graph.roots[tensor.index] for tensor in graph.tensors if tensor.role.persistent}
        kept = lasting | {graph.roots[tensor] for tensor in graph.outputs}
        return cls(
            graph,
            np.array(graph.roots, np.int64)[graph.alike.touched],
            graph.alike.counts,
            np.array([tensor.index for tensor in own], np.int64),
            np.array([tensor.itemsize for tensor in own], np.int64),
            np.array([tensor.index in lasting for tensor in own], np.bool_),
            np.array([tensor.index in kept for tensor in own], np.bool_),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """How an operation uses the memory of one worker, see `WorkerUse`, in arrays."""

    own: Integers
    """The size of each buffer of its own."""

    copied: tuple[Integers, ...]
    """The sizes of the parts of copies."""

    touched: Integers
    """The buffers that it touches, `[4, touched]`."""

    overwriting: Integers
    """Which output may take over which input, `[6, pairs]`."""

    @classmethod
    def of(cls, use: WorkerUse) -> _Tables:
        return cls(
            np.array(use.own, np.int64),
            tuple([np.array(sizes, np.int64) for sizes in use.copied]),
            np.array(use.touched, np.int64).reshape(-1, 4).T,
            np.array(use.overwriting, np.int64).reshape(-1, 6).T,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """How an operation uses memory."""

    ticks: int
    """The ticks until the next operation begins."""

    last: int
    """The tick of its last instruction."""

    tables: tuple[int, ...]
    """For each worker the number of its tables."""


class _KnownUses:
    """The uses of memory that are known of plans in the same steps. Equal ones have equal numbers."""

    def __init__(self, workers: int, factors: tuple[int, ...]) -> None:
        self.movements = Movements(workers, factors)
        self.uses: dict[tuple[int, ...], _Use] = {}
        """The uses of operations, by the numbers of what they depend on."""
        self.tables: list[_Tables] = []
        """The uses of single workers, by their numbers."""
        self.parts: list[Integers] = []
        """The elements of a worker's parts of a tensor, by their numbers."""
        self.numbers: dict[Hashable, int] = {}
        """The numbers of forms, regions and pairs of them."""
        self._table_numbers: dict[WorkerUse, int] = {}
        self._parts_numbers: dict[tuple[int, ...], int] = {}
        self._held: dict[WorkerRegions, tuple[int, ...]] = {}
        self._workers = workers

    def number(self, value: Hashable) -> int:
        """Return the number of a value."""
        return self.numbers.setdefault(value, len(self.numbers))

    def held(self, regions: WorkerRegions) -> tuple[int, ...]:
        """Return for each worker the number of its parts of a tensor."""
        found = self._held.get(regions)
        if found is None:
            each: list[list[int]] = [[] for _ in range(self._workers)]
            for worker, elements in zip(regions.workers, regions.elements, strict=True):
                each[worker].append(elements)
            found = self._held[regions] = tuple([self._parts_number(tuple(own)) for own in each])
        return found

    def add(self, key: tuple[int, ...], made: MemoryUse) -> _Use:
        """Remember the use of an operation."""
        numbers = tuple([self._table_number(use) for use in made.workers])
        found = self.uses[key] = _Use(made.ticks, made.last, numbers)
        return found

    def _parts_number(self, elements: tuple[int, ...]) -> int:
        found = self._parts_numbers.get(elements)
        if found is None:
            found = self._parts_numbers[elements] = len(self.parts)
            self.parts.append(np.array(elements, np.int64))
        return found

    def _table_number(self, use: WorkerUse) -> int:
        found = self._table_numbers.get(use)
        if found is None:
            found = self._table_numbers[use] = len(self.tables)
            self.tables.append(_Tables.of(use))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _PlacedSlots:
    """The slots of a plan's operations (`memory_use`), one after the other."""

    firsts: Integers
    """The first slot of each operation, and the number of all slots."""

    of_tensors: Integers
    """The slots of tensors."""

    roots: Integers
    """The tensors whose memory those have."""

    @classmethod
    def of(
        cls,
        touched: _TouchedTensors,
        operations: Sequence[Operation],
        versions: Mapping[int, Sequence[ReadCopy]],
    ) -> _PlacedSlots:
        """Return the slots of operations in their order, given the copies that they read."""
        numbers = np.array([operation.index for operation in operations], np.int64)
        counts = touched.counts[numbers]
        lengths = counts + 1
        for place, copies in versions.items():
            lengths[place] += len(copies)
        firsts = np.concatenate([[0], lengths.cumsum()])
        listed = (touched.counts.cumsum() - touched.counts)[numbers]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        roots = touched.roots[np.repeat(listed, counts) + within]
        return cls(firsts, np.repeat(firsts[:-1], counts) + within, roots)

    def at(self, places: Integers, slots: Integers) -> Integers:
        """Return slots that are given by the places of their operations and their numbers there."""
        return np.where(slots == OWN, self.firsts[places + 1], self.firsts[places]) + slots


class _PlacedUses:
    """The uses of a plan's operations, in their order."""

    def __init__(self, touched: _TouchedTensors, known: _KnownUses, plan: Plan) -> None:
        self._touched = touched
        self._known = known
        self._graph = touched.graph
        self._regions = PlanRegions(touched.graph, plan, known.movements)
        self._operations = in_order(touched.graph, plan.written_order)
        self._versions = self._versions_by_place()
        self._slots = _PlacedSlots.of(touched, self._operations, self._versions)
        self._uses = self._found()
        ticks = np.array([use.ticks for use in self._uses], np.int64)
        self._begins = ticks.cumsum() - ticks
        """The tick at which each operation begins."""
        self._end = int(self._begins[-1]) + self._uses[-1].last + 1 if self._uses else 1
        """The tick after all instructions."""

    def _versions_by_place(self) -> dict[int, list[ReadCopy]]:
        """Return the copies that operations read, by their places, each after what it is made from."""
        versions = self._regions.versions
        reading = {operation for operation, _ in versions}
        places = {each.index: n for n, each in enumerate(self._operations) if each.index in reading}
        copies = {(copy.tensor, copy.number): replace(copy, made=False) for copy in versions.values()}
        found: dict[int, list[ReadCopy]] = {}
        for number, place in places.items():
            for tensor in dict.fromkeys(self._graph.operations[number].inputs):
                version = versions.get((number, tensor))
                chain: list[ReadCopy] = []
                while version is not None:
                    chain.append(version)
                    version = copies.get((tensor, version.from_number))
                found.setdefault(place, []).extend(reversed(chain))
        return found

    def _found(self) -> list[_Use]:
        """Return the uses of operations; those that are not known are found by lowering."""
        regions, known = self._regions, self._known
        strategies = [regions.plan.strategies[each.name] for each in self._graph.operations]
        forms = numbered(strategies, known.numbers)
        parts = [numbered(each, known.numbers) for each in (regions.owned, regions.stops)]
        homes = zip(*parts, strict=True)
        keys = self._graph.alike.keys(forms, list(map(known.number, homes)))
        found = []
        for number, operation in enumerate(self._operations):
            versions = self._versions.get(number, ())
            key = keys[operation.index]
            for version in versions:
                held = known.number(regions.movements.layout(version.layout))
                place = operation.inputs.index(version.tensor)
                key += place, version.from_number == 0, version.made, held
            use = known.uses.get(key)
            if use is None:
                use = known.add(key, memory_use(regions, operation, versions))
            found.append(use)
        return found

    def largest_arena(self, withheld: Sequence[int]) -> int:
        """Return the largest arena of a worker, with the bytes that are withheld from that worker."""
        tables = np.array([use.tables for use in self._uses], np.int64).reshape(-1, len(withheld))
        owned = [self._known.held(self._regions.owned[tensor]) for tensor in self._touched.homes.tolist()]
        parts = np.array(owned, np.int64).reshape(-1, len(withheld))
        done: set[tuple[bytes, bytes, int]] = set()
        largest = max(withheld)
        for worker, besides in enumerate(withheld):
            key = tables[:, worker].tobytes(), parts[:, worker].tobytes(), besides
            if key not in done:
                done.add(key)
                uses = [self._known.tables[number] for number in tables[:, worker].tolist()]
                held = [self._known.parts[number] for number in parts[:, worker].tolist()]
                buffers = self._buffers(uses, held)
                arena = plan_arena(*buffers, enough=largest - besides).nbytes
                largest = max(largest, arena + besides)
        return largest

    def _buffers(
        self, uses: Sequence[_Tables], held: Sequence[Integers]
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Return the sizes, births, deaths and hosts of a worker's buffers, as `plan_arena` takes them.

        They are in the order in which lowering makes them.
        """
        touched = self._touched
        counts = np.array([len(elements) for elements in held], np.int64)
        homes = np.zeros(len(touched.graph.tensors) + 1, np.int64)
        homes[touched.homes] = counts.cumsum() - counts
        pieces = [use.own for use in uses]
        firsts = self._firsts(homes, int(counts.sum()), uses, pieces)
        joined = _joined([_joined(held) * np.repeat(touched.itemsizes, counts), *pieces])
        births = np.full(len(joined), self._end + 1, np.int64)
        deaths = np.full(len(joined), -1, np.int64)
        lasting = np.repeat(touched.lasting, counts)
        births[: len(lasting)][lasting] = 0
        deaths[: len(lasting)][np.repeat(touched.kept, counts)] = self._end
        (slots, numbers, born, died), places = _rows([use.touched for use in uses], 4)
        buffers = firsts[self._slots.at(places, slots)] + numbers
        np.minimum.at(births, buffers, self._begins[places] + born)
        np.maximum.at(deaths, buffers, self._begins[places] + died)
        pairs, places = _rows([use.overwriting for use in uses], 6)
        outputs = firsts[self._slots.at(places, pairs[0])] + pairs[1]
        inputs = firsts[self._slots.at(places, pairs[2])] + pairs[3]
        hosts = _hosts(births, deaths, outputs, inputs, self._begins[places] + pairs[4], pairs[5])
        return joined, births, deaths, hosts

    def _firsts(
        self, homes: Integers, begin: int, uses: Sequence[_Tables], pieces: list[Integers]
    ) -> Integers:
        """Return the first buffer of each slot, operation after operation.

        `homes` are those of tensors, and others begin at `begin`. `pieces` are the sizes of the buffers that
        operations make, to which those of copies are added.
        """
        slots = self._slots
        for place in self._versions:
            pieces[place] = np.concatenate([*uses[place].copied, uses[place].own])
        counts = np.array([len(piece) for piece in pieces], np.int64)
        ends = begin + counts.cumsum()
        found = np.zeros(slots.firsts[-1], np.int64)
        found[slots.of_tensors] = homes[slots.roots]
        found[slots.firsts[1:] - 1] = ends - np.array([len(use.own) for use in uses], np.int64)
        copies: dict[tuple[int, int], int] = {}
        for place, versions in self._versions.items():
            first, made = int(ends[place] - counts[place]), iter(uses[place].copied)
            for slot, version in enumerate(versions, int(slots.firsts[place + 1]) - 1 - len(versions)):
                if version.made:
                    copies[version.tensor, version.number] = first
                    first += len(next(made))
                found[slot] = copies[version.tensor, version.number]
        return found


def _hosts(
    births: Integers, deaths: Integers, outputs: Integers, inputs: Integers, now: Integers, rank: Integers
) -> Integers:
    """Return the buffer whose memory each buffer takes over, or its own number.

    `outputs` may take over `inputs` at the ticks `now`; of one computation, pairs of lower rank come first.
    """
    hosts = np.arange(len(births))
    able = (deaths[inputs] == now) & (births[inputs] < now) & (births[outputs] == now)
    outputs, inputs, rank = outputs[able], inputs[able], rank[able]
    taken = np.zeros(len(births), bool)
    for number in range(int(rank.max(initial=-1)) + 1):
        some = rank == number
        output, host = outputs[some], inputs[some]
        free = (hosts[output] == output) & ~taken[host]
        hosts[output[free]] = host[free]
        taken[host[free]] = True
    while True:
        further = hosts[hosts]
        if (further == hosts).all():
            return hosts
        hosts = further


def _rows(tables: Sequence[Integers], columns: int) -> tuple[Integers, Integers]:
    """Return the columns of all operations' tables, with the place of each row's operation."""
    lengths = np.array([table.shape[1] for table in tables], np.int64)
    joined = np.concatenate([np.zeros((columns, 0), np.int64), *tables], axis=1)
    return joined, np.repeat(np.arange(len(tables)), lengths)


def _joined(pieces: Sequence[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *pieces])
