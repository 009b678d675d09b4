"""The uses of memory of a plan's operations, one after the other.

Births, deaths and the buffers that outputs take over follow for all buffers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...dataflow.alike import numbered
from ...dataflow.graph import Operation
from ...programs.arena import Arena, plan_arena
from ...programs.memory import HeldBuffer, MemoryFigures, fullest_buffers, memory_figures
from ...programs.program import BufferKind
from ...support.integers import Integers
from ..costs.movement import WorkerRegions
from ..layouts.copies import ReadCopy
from ..layouts.order import in_order
from ..plans.plan import Plan
from .known_uses import KnownUses, TouchedTensors, Use, UseTables
from .lowering import PlanRegions, buffer_kind
from .memory_use import KINDS, OWN, memory_use


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
        touched: TouchedTensors,
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
        listed = touched.firsts[numbers]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        roots = touched.roots[np.repeat(listed, counts) + within]
        return cls(firsts, np.repeat(firsts[:-1], counts) + within, roots)

    def at(self, places: Integers, slots: Integers) -> Integers:
        """Return slots that are given by the places of their operations and their numbers there."""
        return np.where(slots == OWN, self.firsts[places + 1], self.firsts[places]) + slots


class PlacedUses:
    """The uses of a plan's operations, in their order."""

    def __init__(self, touched: TouchedTensors, known: KnownUses, plan: Plan) -> None:
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

    def _found(self) -> list[Use]:
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

    def figures(self) -> MemoryFigures:
        """Return the sizes of all arenas, and what they hold when it is the most."""
        tables, parts = self._numbers()
        known: dict[tuple[bytes, bytes], tuple[Arena, list[HeldBuffer]]] = {}
        keys = [(tables[:, w].tobytes(), parts[:, w].tobytes()) for w in range(tables.shape[1])]
        for worker, key in enumerate(keys):
            if key not in known:
                uses, held = self._of_worker(tables[:, worker], parts[:, worker])
                known[key] = self._filled(uses, held)
        arenas, buffers = zip(*[known[key] for key in keys], strict=True)
        return memory_figures(self._graph, arenas, buffers)

    def _filled(self, uses: Sequence[UseTables], held: Sequence[Integers]) -> tuple[Arena, list[HeldBuffer]]:
        """Return the arena of a worker, and the buffers that it holds when that is the most."""
        sizes, births, deaths, hosts = self._buffers(uses, held)
        arena = plan_arena(sizes, births, deaths, hosts)
        tensors, kinds = self._contents(uses, held)
        at_peak = np.array(fullest_buffers(arena, births, deaths, hosts.tolist()), np.int64)
        rows = zip(tensors[at_peak].tolist(), kinds[at_peak].tolist(), sizes[at_peak].tolist(), strict=True)
        return arena, [(tensor, KINDS[kind], nbytes) for tensor, kind, nbytes in rows]

    def _contents(self, uses: Sequence[UseTables], held: Sequence[Integers]) -> tuple[Integers, Integers]:
        """Return the tensors that a worker's buffers hold, and the numbers of their kinds."""
        touched, owned = self._touched, self._regions.owned
        counts = [len(elements) for elements in held]
        homes = np.array([self._kind(owned[tensor], BufferKind.SHARD) for tensor in touched.homes.tolist()])
        firsts = touched.firsts[[operation.index for operation in self._operations]]
        (slots, kinds), places = _rows([use.contents for use in uses], 2)
        tensors = self._graph.alike.touched[firsts[places] + slots]
        before, copied, copied_kinds = list[int](), list[int](), list[int]()
        for place, versions in self._versions.items():
            made = [version for version in versions if version.made]
            for version, sizes in zip(made, uses[place].copied, strict=True):
                layout = self._regions.movements.layout(version.layout)
                before += [int(np.searchsorted(places, place))] * len(sizes)
                copied += [version.tensor] * len(sizes)
                copied_kinds += [self._kind(layout, BufferKind.COPY)] * len(sizes)
        return (
            np.concatenate([np.repeat(touched.homes, counts), np.insert(tensors, before, copied)]),
            np.concatenate([np.repeat(homes, counts), np.insert(kinds, before, copied_kinds)]),
        )

    def _kind(self, held: WorkerRegions, kind: BufferKind) -> int:
        return KINDS.index(buffer_kind(held, kind))

    def largest_arena(self, withheld: Sequence[int]) -> int:
        """Return the largest arena of a worker, with the bytes that are withheld from that worker."""
        tables, parts = self._numbers()
        done: set[tuple[bytes, bytes, int]] = set()
        largest = max(withheld)
        for worker, besides in enumerate(withheld):
            key = tables[:, worker].tobytes(), parts[:, worker].tobytes(), besides
            if key not in done:
                done.add(key)
                buffers = self._buffers(*self._of_worker(tables[:, worker], parts[:, worker]))
                arena = plan_arena(*buffers, enough=largest - besides).nbytes
                largest = max(largest, arena + besides)
        return largest

    def _numbers(self) -> tuple[Integers, Integers]:
        """Return the numbers of tables `[operations, workers]` and of homes' parts `[homes, workers]`."""
        workers = self._regions.plan.workers
        owned = [self._known.held(self._regions.owned[tensor]) for tensor in self._touched.homes.tolist()]
        tables = np.array([use.tables for use in self._uses], np.int64).reshape(-1, workers)
        return tables, np.array(owned, np.int64).reshape(-1, workers)

    def _of_worker(self, tables: Integers, parts: Integers) -> tuple[list[UseTables], list[Integers]]:
        """Return the tables of a worker's operations, and the parts of its homes, by their numbers."""
        known = self._known
        return (
            [known.tables[number] for number in tables.tolist()],
            [known.parts[number] for number in parts.tolist()],
        )

    def _buffers(
        self, uses: Sequence[UseTables], held: Sequence[Integers]
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
        self, homes: Integers, begin: int, uses: Sequence[UseTables], pieces: list[Integers]
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
