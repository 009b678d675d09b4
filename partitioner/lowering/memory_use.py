"""How an operation of a plan uses the memory of each worker: its buffers, and when it touches which.

An operation uses memory in the same way wherever operators, tasks and holdings are equal: in another layer,
and in another plan. So it is lowered once for all of them (`memory_uses`), which gives the buffers that live
no longer than the operation, and the ticks at which it touches buffers of tensors and of copies, counted from
its beginning. Workers that do the same in other places use memory alike as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...dataflow.graph import Graph, Operation
from ...programs.clock import reads, writes
from ...programs.memory import have_same_form
from ...programs.program import BufferKind, Compute, Held
from ..layouts.copies import ReadCopy
from .lowering import Lowering, PlanRegions

OWN = -1
"""The slot of the buffers that live no longer than an operation."""

KINDS = tuple(BufferKind)
"""All kinds of buffers, by their numbers."""

_NEVER = np.iinfo(np.int64).max // 2

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """How an operation uses the memory of one worker.

    A buffer is given by a *slot* and its number there, among those that the worker has. Slots are those of
    the tensors that the operation touches, of the copies that it reads, each after what it is made from, and
    last the buffers of its own. Ticks count from its beginning.
    """

    own: tuple[int, ...]
    """The size of each buffer of its own."""

    contents: Rows
    """The slot of the tensor that each of these holds, and the number of its kind among all `KINDS`."""

    copied: Rows
    """For each copy that it makes, the size of each part; 0 for one that the worker holds already."""

    touched: Rows
    """The buffers that it touches: slot, number, first tick written, last tick touched.

    A buffer that it does not write has a tick that is later than all others.
    """

    overwriting: Rows
    """Which output may take over which input: the output's slot and number, the input's, the tick of the
    computation, and the number of the pair within the computation. Earlier pairs come first.
    """


@dataclass(frozen=True, slots=True, eq=False)
class MemoryUse:
    """How an operation uses memory."""

    ticks: int
    """The ticks until the next operation begins."""

    last: int
    """The tick of its last instruction."""

    workers: tuple[WorkerUse, ...]
    """How it uses the memory of each worker."""


class _Slots:
    """The slot and the number of buffers."""

    def __init__(self, workers: int) -> None:
        self.of: dict[Held, tuple[int, int]] = {}
        self._workers = workers

    def add(self, slot: int, buffers: Sequence[Held]) -> None:
        """Number the buffers of a slot, worker by worker; those that have a slot keep it."""
        counts = [0] * self._workers
        for held in buffers:
            self.of.setdefault(held, (slot, counts[held[0]]))
            counts[held[0]] += 1


def memory_use(regions: PlanRegions, operation: Operation, versions: Sequence[ReadCopy]) -> MemoryUse:
    """Lower one operation, given the copies that it reads."""
    lowering = Lowering(regions)
    workers = range(regions.plan.workers)
    slots = _Slots(len(workers))
    tensors = (*operation.inputs, *operation.outputs)
    for slot, tensor in enumerate(tensors):
        slots.add(slot, lowering.home(tensor))
    for slot, version in enumerate(versions, len(tensors)):
        if not version.made:
            lowering.copy(operation, version)
            slots.add(slot, lowering.copies[version.tensor, version.number][1])
    for instructions in lowering.instructions:
        instructions.clear()
    begins, lowering.tick = [len(buffers) for buffers in lowering.buffers], 0
    lowering.add(operation)
    copied: list[list[tuple[int, ...]]] = [[] for _ in workers]
    for slot, version in enumerate(versions, len(tensors)):
        if version.made:
            parts = lowering.copies[version.tensor, version.number][1]
            for worker, sizes in enumerate(_new_sizes(lowering, slots, parts)):
                copied[worker].append(sizes)
            slots.add(slot, parts)
    own: list[tuple[int, ...]] = []
    contents: list[Rows] = []
    for worker, buffers in enumerate(lowering.buffers):
        made = [each for each in buffers[begins[worker] :] if (worker, each.index) not in slots.of]
        slots.add(OWN, [(worker, each.index) for each in made])
        own.append(tuple([each.nbytes for each in made]))
        contents.append(tuple([(tensors.index(each.tensor), KINDS.index(each.kind)) for each in made]))
    touched = _touched(lowering, slots)
    overwriting = _overwriting(regions.graph, operation, lowering, slots)
    last = max((each[-1].tick for each in lowering.instructions if each), default=0)
    uses = [WorkerUse(own[w], contents[w], tuple(copied[w]), touched[w], overwriting[w]) for w in workers]
    return MemoryUse(lowering.tick, last, tuple(uses))


def _new_sizes(lowering: Lowering, slots: _Slots, parts: Sequence[Held]) -> list[tuple[int, ...]]:
    """Return for each worker the sizes of its parts of a copy; 0 for those that have a slot already."""
    found: list[list[int]] = [[] for _ in lowering.buffers]
    for worker, index in parts:
        known = (worker, index) in slots.of
        found[worker].append(0 if known else lowering.buffers[worker][index].nbytes)
    return [tuple(sizes) for sizes in found]


def _touched(lowering: Lowering, slots: _Slots) -> list[Rows]:
    """Return for each worker when instructions touch its buffers, as in `WorkerUse.touched`."""
    found: dict[Held, tuple[int, int]] = {}
    for worker, instructions in enumerate(lowering.instructions):
        for each in instructions:
            for written in writes(each):
                birth, death = found.get((worker, written), (_NEVER, 0))
                found[worker, written] = min(birth, each.tick), max(death, each.tick)
            for held in reads(worker, each):
                birth, death = found.get(held, (_NEVER, 0))
                found[held] = birth, max(death, each.tick)
    rows: list[list[tuple[int, ...]]] = [[] for _ in lowering.buffers]
    for held, ticks in found.items():
        rows[held[0]].append((*slots.of[held], *ticks))
    return [tuple(sorted(each)) for each in rows]


def _overwriting(graph: Graph, operation: Operation, lowering: Lowering, slots: _Slots) -> list[Rows]:
    """Return for each worker which outputs may take over inputs, as in `WorkerUse.overwriting`."""
    names = operation.bound.description.tensor_names
    here = [name in operation.bound.in_place for name in names]
    if not any(here):
        return [() for _ in lowering.buffers]
    found = []
    for worker, instructions in enumerate(lowering.instructions):
        buffers = lowering.buffers[worker]
        rows: list[tuple[int, ...]] = []
        for each in instructions:
            if not isinstance(each, Compute):
                continue
            elsewhere = [buffer for buffer, own in zip(each.inputs, here, strict=True) if not own]
            inputs = [buffer for buffer, own in zip(each.inputs, here, strict=True) if own]
            pairs = [
                (*slots.of[worker, output], *slots.of[worker, buffer], each.tick)
                for output in each.outputs
                for buffer in dict.fromkeys(inputs)
                if buffer is not None and buffer not in elsewhere
                if have_same_form(graph, buffers[buffer], buffers[output])
            ]
            rows += [(*pair, number) for number, pair in enumerate(pairs)]
        found.append(tuple(rows))
    return found
