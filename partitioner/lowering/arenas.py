"""The largest arena of many plans of a graph, without making their programs.

An operation uses memory in the same way wherever operators, tasks and holdings are equal: in another layer,
and in another plan. So it is lowered once for all of them (`_MemoryUse.of`), which gives the buffers that
live no longer than the operation, and the ticks at which it touches buffers of tensors and of copies, counted
from its beginning. A plan puts the uses of its operations one after the other. Then births, deaths and the
buffers that outputs take over follow for all buffers at once.

Guarantees: the buffers are those of `lower`, in the same order, so the arenas are those of `plan_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...dataflow.graph import Graph, Operation
from ...programs.arena import plan_arena
from ...programs.clock import reads, writes
from ...programs.memory import have_same_form
from ...programs.program import Compute, Held
from ...support.gc_pause import gc_paused
from ..costs.movement import Movements
from ..layouts.copies import ReadCopy
from ..layouts.order import in_order
from ..plans.plan import Plan
from .lowering import Lowering, PlanRegions

_Integers = npt.NDArray[np.int64]

_OWN = -1
"""Stands for the buffers that live no longer than an operation, in place of a version's."""


class Arenas:
    """The arenas of plans of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kinds = _kinds(graph)
        self._movements: dict[tuple[int, ...], Movements] = {}
        self._uses: dict[tuple[object, ...], _MemoryUse] = {}

    @gc_paused()
    def largest(self, plan: Plan, withheld: Sequence[int] = ()) -> int:
        """Return the largest arena of the plan's workers, each with the bytes that are withheld from it.

        Raises PlanError if the plan is not for the graph.
        """
        movements = self._movements.get(plan.factors)
        if movements is None:
            movements = self._movements[plan.factors] = Movements(plan.workers, plan.factors)
        placed = _PlacedUses(PlanRegions(self._graph, plan, movements))
        for operation in in_order(self._graph, plan.written_order):
            versions = placed.versions(operation)
            key = self._kinds[operation.index], *placed.key(operation, versions)
            use = self._uses.get(key)
            if use is None:
                use = self._uses[key] = _MemoryUse.of(placed.regions, operation, versions)
            placed.add(operation, versions, use)
        return placed.largest_arena(withheld or (0,) * plan.workers)


def _kinds(graph: Graph) -> list[int]:
    """Number operations by operator, element types and which of their tensors share buffers."""
    known: dict[tuple[object, ...], int] = {}
    found = []
    for operation in graph.operations:
        tensors = *operation.inputs, *operation.outputs
        types = [(graph.tensors[tensor].dtype, graph.tensors[tensor].itemsize) for tensor in tensors]
        own = [graph.roots[tensor] for tensor in tensors]
        key = operation.bound, *map(tensors.index, tensors), *map(own.index, own), *types
        found.append(known.setdefault(key, len(known)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryUse:
    """How an operation uses memory. Compared by identity.

    A buffer is given by a *slot* and its number there. Slots are the tensors that the operation touches, the
    copies that it reads, each after what it is made from, and last the buffers of its own. Ticks count from
    its beginning.
    """

    ticks: int
    """The ticks until the next operation begins."""

    last: int
    """The tick of its last instruction."""

    workers: tuple[int, ...]
    """The worker of each buffer of its own."""

    nbytes: tuple[int, ...]
    """The size of each buffer of its own."""

    copied: tuple[tuple[int, ...], ...]
    """For each copy that it makes, the size of each part; 0 for one that its worker holds already."""

    touched: _Integers
    """The buffers that it touches, `[touched, 4]`: slot, number, first tick written, last tick touched.

    A buffer that it does not write has a tick that is later than all others.
    """

    overwriting: _Integers
    """Which output may take over which input, `[pairs, 6]`: the output's slot and number, the input's, the
    tick of the computation, and the number of the pair within the computation. Earlier pairs come first.
    """

    @classmethod
    def of(cls, regions: PlanRegions, operation: Operation, versions: Sequence[ReadCopy]) -> _MemoryUse:
        """Lower one operation, given the copies that it reads, each after what it is made from."""
        lowering = Lowering(regions)
        tensors = *operation.inputs, *operation.outputs
        slots: dict[Held, tuple[int, int]] = {}

        def found(slot: int, buffers: Sequence[Held]) -> None:
            for number, buffer in enumerate(buffers):
                slots.setdefault(buffer, (slot, number))

        for slot, tensor in enumerate(tensors):
            found(slot, lowering.home(tensor))
        for slot, version in enumerate(versions, len(tensors)):
            if not version.made:
                lowering.copy(operation, version)
                found(slot, lowering.copies[version.tensor, version.number][1])
        for instructions in lowering.instructions:
            instructions.clear()
        begins, lowering.tick = [len(buffers) for buffers in lowering.buffers], 0
        lowering.add(operation)
        copied = []
        for slot, version in enumerate(versions, len(tensors)):
            if version.made:
                buffers = lowering.copies[version.tensor, version.number][1]
                copied.append(tuple([
                    0 if held in slots else lowering.buffers[held[0]][held[1]].nbytes for held in buffers
                ]))  # fmt: skip
                found(slot, buffers)
        own = [
            (worker, buffer)
            for worker, buffers in enumerate(lowering.buffers)
            for buffer in buffers[begins[worker] :]
            if (worker, buffer.index) not in slots
        ]
        found(_OWN, [(worker, buffer.index) for worker, buffer in own])
        last = max((each[-1].tick for each in lowering.instructions if each), default=0)
        return cls(
            lowering.tick,
            last,
            tuple([worker for worker, _ in own]),
            tuple([buffer.nbytes for _, buffer in own]),
            tuple(copied),
            _touched(lowering, slots),
            _overwriting(regions.graph, operation, lowering, slots),
        )


def _touched(lowering: Lowering, slots: dict[Held, tuple[int, int]]) -> _Integers:
    """Return when instructions touch buffers, as in `_MemoryUse.touched`."""
    never = np.iinfo(np.int64).max // 2
    found: dict[Held, tuple[int, int]] = {}
    for worker, instructions in enumerate(lowering.instructions):
        for each in instructions:
            for written in writes(each):
                birth, death = found.get((worker, written), (never, 0))
                found[worker, written] = min(birth, each.tick), max(death, each.tick)
            for held in reads(worker, each):
                birth, death = found.get(held, (never, 0))
                found[held] = birth, max(death, each.tick)
    rows = [(*slots[held], *ticks) for held, ticks in found.items()]
    return np.array(rows, np.int64).reshape(len(rows), 4)


def _overwriting(
    graph: Graph, operation: Operation, lowering: Lowering, slots: dict[Held, tuple[int, int]]
) -> _Integers:
    """Return which outputs may take over inputs, as in `_MemoryUse.overwriting`."""
    names = operation.bound.description.tensor_names
    here = [name in operation.bound.in_place for name in names]
    rows: list[tuple[int, ...]] = []
    for worker, instructions in enumerate(lowering.instructions):
        buffers = lowering.buffers[worker]
        for each in instructions:
            if not isinstance(each, Compute) or not any(here):
                continue
            elsewhere = [buffer for buffer, own in zip(each.inputs, here, strict=True) if not own]
            inputs = [buffer for buffer, own in zip(each.inputs, here, strict=True) if own]
            pairs = [
                (*slots[worker, output], *slots[worker, buffer], each.tick)
                for output in each.outputs
                for buffer in dict.fromkeys(inputs)
                if buffer is not None and buffer not in elsewhere
                if have_same_form(graph, buffers[buffer], buffers[output])
            ]
            rows += [(*pair, number) for number, pair in enumerate(pairs)]
    return np.array(rows, np.int64).reshape(len(rows), 6)


class _PlacedUses:
    """The buffers of a plan, in the order in which lowering makes them, and the uses of its operations."""

    def __init__(self, regions: PlanRegions) -> None:
        self.regions = regions
        self._graph = regions.graph
        self._roots = regions.graph.roots
        self._firsts: dict[tuple[int, int], int] = {}
        """The first buffer of each version, by the numbers of tensor and version."""
        self._owners: list[int] = []
        """The worker of each buffer."""
        self._sizes: list[int] = []
        """The size of each buffer."""
        self._copies = {
            (copy.tensor, copy.number): replace(copy, made=False) for copy in regions.versions.values()
        }
        """The copies, for operations that find them made."""
        self._placed: dict[_MemoryUse, list[tuple[int, ...]]] = {}
        """For each use the ticks at which it begins, with the first buffer of each slot."""
        self._tick = 0
        self._last = 0
        for tensor, held in zip(self._graph.tensors, regions.owned, strict=True):
            if tensor.alias is None:
                self._firsts[tensor.index, 0] = len(self._owners)
                self._owners += held.workers
                self._sizes += [count * tensor.itemsize for count in held.elements]

    def versions(self, operation: Operation) -> list[ReadCopy]:
        """Return the copies that an operation reads, each after what it is made from."""
        found: list[ReadCopy] = []
        if not self._copies:
            return found
        for tensor in dict.fromkeys(operation.inputs):
            version = self.regions.versions.get((operation.index, tensor))
            chain = []
            while version is not None:
                chain.append(version)
                version = self._copies.get((tensor, version.from_number))
            found += reversed(chain)
        return found

    def key(self, operation: Operation, versions: Sequence[ReadCopy]) -> list[object]:
        """Return what the use of an operation depends on, besides its kind."""
        regions = self.regions
        found: list[object] = [regions.plan.strategies[operation.name]]
        found += [regions.owned[tensor] for tensor in operation.inputs]
        found += [regions.owned[tensor] for tensor in operation.outputs]
        found += [regions.stops[tensor] for tensor in operation.outputs]
        for version in versions:
            held = regions.movements.layout(version.layout)
            found += (operation.inputs.index(version.tensor), version.from_number == 0, version.made, held)
        return found

    def add(self, operation: Operation, versions: Sequence[ReadCopy], use: _MemoryUse) -> None:
        """Put the use of the next operation after those before."""
        copied = iter(use.copied)
        for version in versions:
            if version.made:
                self._firsts[version.tensor, version.number] = len(self._owners)
                self._owners += self.regions.movements.layout(version.layout).workers
                self._sizes += next(copied)
        firsts = self._firsts
        homes = [firsts[self._roots[tensor], 0] for tensor in (*operation.inputs, *operation.outputs)]
        copies = [firsts[version.tensor, version.number] for version in versions]
        self._placed.setdefault(use, []).append((self._tick, *homes, *copies, len(self._owners)))
        self._owners += use.workers
        self._sizes += use.nbytes
        self._last = self._tick + use.last
        self._tick += use.ticks

    def largest_arena(self, withheld: Sequence[int]) -> int:
        """Return the largest arena of a worker, with the bytes that are withheld from that worker."""
        sizes, owners = np.array(self._sizes, np.int64), np.array(self._owners, np.int64)
        births, deaths = self._lifetimes()
        hosts = self._hosts(births, deaths)
        by_worker = np.argsort(owners, kind="stable")
        place = np.empty_like(by_worker)
        place[by_worker] = np.arange(len(by_worker))
        ends = np.searchsorted(owners[by_worker], np.arange(self.regions.plan.workers + 1))
        done: set[tuple[bytes, int]] = set()
        largest = max(withheld)
        for (begin, end), besides in zip(pairwise(ends.tolist()), withheld, strict=True):
            own = by_worker[begin:end]
            each = sizes[own], births[own], deaths[own], place[hosts[own]] - begin
            key = np.concatenate(each).tobytes(), besides
            if key not in done:
                done.add(key)
                largest = max(largest, plan_arena(*each, enough=largest - besides).nbytes + besides)
        return largest

    def _lifetimes(self) -> tuple[_Integers, _Integers]:
        """Return the first and the last tick of every buffer."""
        last = self._last + 1
        births = np.full(len(self._sizes), last + 1, np.int64)
        deaths = np.full(len(self._sizes), -1, np.int64)
        for tensor, root in zip(self._graph.tensors, self._roots, strict=True):
            if tensor.role.persistent:
                own = self._home(root)
                births[own], deaths[own] = 0, last
        for use, rows in self._placed.items():
            begins = np.array(rows, np.int64)
            slots, numbers, born, died = use.touched.T
            buffers = begins[:, 1:][:, slots] + numbers
            np.minimum.at(births, buffers, begins[:, :1] + born)
            np.maximum.at(deaths, buffers, begins[:, :1] + died)
        for tensor_index in self._graph.outputs:
            deaths[self._home(self._roots[tensor_index])] = last
        return births, deaths

    def _hosts(self, births: _Integers, deaths: _Integers) -> _Integers:
        """Return the buffer whose memory each buffer takes over, or its own number."""
        hosts = np.arange(len(births))
        pairs = np.concatenate([np.zeros((0, 4), np.int64), *self._pairs()])
        outputs, inputs, now, rank = pairs.T
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

    def _pairs(self) -> list[_Integers]:
        """Return the pairs of which one may take over another: output, input, tick and rank of each."""
        found = []
        for use, rows in self._placed.items():
            if len(use.overwriting):
                begins = np.array(rows, np.int64)
                output_slot, output, input_slot, buffer, now, rank = use.overwriting.T
                firsts = begins[:, 1:]
                columns = (
                    firsts[:, output_slot] + output,
                    firsts[:, input_slot] + buffer,
                    begins[:, :1] + now,
                    np.broadcast_to(rank, (len(begins), len(rank))),
                )
                found.append(np.stack(columns, axis=-1).reshape(-1, 4))
        return found

    def _home(self, root: int) -> slice:
        first = self._firsts[root, 0]
        return slice(first, first + len(self.regions.owned[root].workers))
