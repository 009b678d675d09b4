"""Lower a graph and its plan to one instruction list per worker (Tofu, section 6).

For a task on worker `w` that reads inputs at `R` and produces outputs at `P`, with holdings `T[w]` of the
tensors:

    copy       T'[w]         from T, for the first reader of a copy T'
    fetch      R             into a buffer, unless a holding in T[w] contains it
    compute    P from R      into a holding if P is one in T[w], otherwise into a buffer
    collect    T[w]          from the P of others, or by reducing one P for each term, in one hop or two

A value that is not reduced yet is held term by term. A task that reads it takes one term, and a copy or a
collection with fewer terms reduces.

`R`, `P` and `T` follow from the forms and layouts of the plan (`costs.movement.Movements`). Covers of a
region by what workers hold are disjoint (`programs.cover`), so every element is moved once. A worker without
a part in an operation has no instruction for it.

Assumes: the plan is legal for the graph (`Plan.verify`). Guarantees: instructions in the order of the clock,
every one later than what it depends on, and as many fetched bytes as the plan states.
`programs.check_program` checks both. Implemented in: `copy`, `_fetch_inputs`, `_output_buffers` (where an
output is computed), `_collect`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...analyzer.indices.region import Region
from ...dataflow.graph import Graph, Operation
from ...programs.gathering import gather
from ...programs.program import (
    Buffer,
    BufferKind,
    Compute,
    Held,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
    Reduce,
)
from ...support.gc_pause import gc_paused
from ...tdl.ast import AnyReducer
from ..costs.movement import Assembly, Fetches, Movements, OperatorRegions, WorkerRegions
from ..layouts.copies import ReadCopy
from ..layouts.order import in_order
from ..plans.plan import Plan, require_graph, require_plan

_Holdings = tuple[WorkerRegions, Sequence[Held]]
"""Regions of a tensor on workers, and the buffers that hold them."""


@gc_paused()
def lower(graph: Graph, plan: Plan, movements: Movements | None = None) -> PartitionedGraph:
    """Make the programs that run `graph` as `plan` says.

    `planned_bytes` are counted from the pieces and equal `plan.cost_bytes`. Plans with the same factors may
    share `movements`, of which each is then found once. Raises GraphError for a value that is not a graph,
    PlanError for one that is not a plan or not for this graph, and ProgramError if tensors that are to be
    collected together cannot wait for each other.
    """
    require_graph(graph)
    require_plan(plan)
    lowering = Lowering(PlanRegions(graph, plan, movements or Movements(plan.workers, plan.factors)))
    homes = tuple([lowering.home(tensor.index) for tensor in graph.tensors])
    for operation in in_order(graph, plan.written_order):
        lowering.add(operation)
    programs = tuple(
        Program(worker, tuple(buffers), tuple(instructions))
        for worker, (buffers, instructions) in enumerate(
            zip(lowering.buffers, lowering.instructions, strict=True)
        )
    )
    lowered = PartitionedGraph(graph, plan.workers, programs, homes, lowering.planned_bytes)
    return gather(lowered, plan.groups(graph)) if plan.together else lowered


class PlanRegions:
    """The regions that a plan's forms and layouts stand for."""

    def __init__(self, graph: Graph, plan: Plan, movements: Movements) -> None:
        """Raises PlanError if the plan is not for the graph."""
        plan.check_graph(graph)
        self.graph = graph
        self.plan = plan
        self.movements = movements
        layouts = [plan.layouts[tensor.name] for tensor in graph.tensors]
        each = {id(layout): layout for layout in layouts}
        held = {key: movements.layout(layout) for key, layout in each.items()}
        stops = {
            key: movements.layout(layout.stop) for key, layout in each.items() if layout.stop is not None
        }
        self.owned = [held[id(layout)] for layout in layouts]
        """The regions of each tensor at home."""
        self.stops = [stops.get(id(layout)) for layout in layouts]
        """The regions in which each tensor's terms are reduced on their way home, if they are."""
        self.versions = plan.versions_read(graph)
        """The copies that operations read, by the numbers of operation and tensor."""

    def operator(self, operation: Operation) -> OperatorRegions:
        """Return an operation split into tasks."""
        return self.movements.operator(operation.bound, self.plan.strategies[operation.name])

    def reducer(self, tensor: int) -> AnyReducer:
        """Return what combines the terms of a tensor."""
        found = self.operator(self._makers[tensor]).reducer
        assert found is not None, "the tensor is made in terms"
        return found

    @cached_property
    def _makers(self) -> dict[int, Operation]:
        return {tensor: operation for operation in self.graph.operations for tensor in operation.outputs}


class Lowering:
    """The instructions of operations, made one operation after the other."""

    def __init__(self, regions: PlanRegions) -> None:
        self.buffers: list[list[Buffer]] = [[] for _ in range(regions.plan.workers)]
        """The buffers of each worker."""
        self.instructions: list[list[Instruction]] = [[] for _ in range(regions.plan.workers)]
        """The instructions of each worker."""
        self.planned_bytes = 0
        """The bytes that instructions fetch."""
        self.tick = 0
        """The tick at which the next operation begins."""
        self.copies: dict[tuple[int, int], _Holdings] = {}
        """The copies that were made, by the numbers of tensor and version."""
        self._regions = regions
        self._tensors = regions.graph.tensors
        self._roots = regions.graph.roots
        self._movements = regions.movements
        self._owned = regions.owned
        self._homes: dict[int, tuple[Held, ...]] = {}

    def home(self, tensor: int) -> tuple[Held, ...]:
        """Return the buffers that hold a tensor between operations; make them when first asked for."""
        root = self._roots[tensor]
        found = self._homes.get(root)
        if found is None:
            found = tuple(self._buffers_for(root, self._owned[root], BufferKind.SHARD))
            self._homes[root] = found
        return found

    def add(self, operation: Operation) -> None:
        """Append the instructions of one operation: fetch, compute, collect."""
        operator = self._regions.operator(operation)
        names = operation.bound.description.tensor_names
        for tensor in dict.fromkeys(operation.inputs):
            version = self._regions.versions.get((operation.index, tensor))
            if version is not None and version.made:
                self.copy(operation, version)
        reads = [
            self._read(operation, operator.inputs.get(name), tensor)
            for name, tensor in zip(names, operation.inputs, strict=True)
        ]
        inputs = self._fetch_inputs(operation.index, operator, reads)
        produced = [
            self._output_buffers(operation, operator, tensor, output, inputs)
            for output, tensor in enumerate(operation.outputs)
        ]
        self.tick = self._compute(operation.index, operator, inputs, produced) + 1
        for output, tensor in enumerate(operation.outputs):
            self._collect(operation, operator, tensor, output, produced[output])
        self.tick += 1

    def _read(self, operation: Operation, needed: WorkerRegions | None, tensor: int) -> _Read | None:
        if needed is None:
            return None
        version = self._regions.versions.get((operation.index, tensor))
        held, holders = self._version(tensor, 0 if version is None else version.number)
        term = needed.term if held.terms > 1 else (0,) * len(needed.workers)
        return _Read(tensor, needed, term, holders, self._movements.fetches(needed, held))

    def _version(self, tensor: int, number: int) -> _Holdings:
        """Return the holdings of a version of a tensor, and their buffers."""
        return self.copies[tensor, number] if number else (self._owned[tensor], self.home(tensor))

    def copy(self, operation: Operation, version: ReadCopy) -> None:
        """Make a copy of a tensor. A part that its worker holds already needs no memory of its own."""
        tensor = version.tensor
        held, holders = self._version(tensor, version.from_number)
        copied = self._movements.layout(version.layout)
        found: list[Held] = []
        if copied.terms < held.terms:
            found = self._buffers_for(tensor, copied, BufferKind.COPY)
            self._fill(operation, tensor, (held, holders), (copied, found))
        else:
            for part, fetch in enumerate(self._movements.fetches(copied, held)):
                worker = copied.workers[part]
                if isinstance(fetch, int):
                    found.append(holders[fetch])
                    continue
                buffer = self._buffer(tensor, copied, part, buffer_kind(copied, BufferKind.COPY))
                pieces = self._pieces(fetch, tensor, holders)
                self.instructions[worker].append(MultiFetch(operation.index, buffer, pieces, self.tick))
                found.append((worker, buffer))
        self.copies[tensor, version.number] = copied, found
        self.tick += 1

    def _buffer(self, tensor: int, held: WorkerRegions, part: int, kind: BufferKind) -> int:
        """Add a buffer for a part of a tensor to its worker; return the buffer's number."""
        buffers = self.buffers[held.workers[part]]
        index = len(buffers)
        nbytes = held.elements[part] * self._tensors[tensor].itemsize
        buffers.append(Buffer(index, tensor, held.regions[part], kind, nbytes))
        return index

    def _buffers_for(self, tensor: int, held: WorkerRegions, kind: BufferKind) -> list[Held]:
        """Add buffers for holdings of a tensor."""
        of = buffer_kind(held, kind)
        return [(worker, self._buffer(tensor, held, part, of)) for part, worker in enumerate(held.workers)]

    def _fetch_inputs(
        self, operation: int, operator: OperatorRegions, reads: Sequence[_Read | None]
    ) -> list[tuple[int | None, ...]]:
        """Return every task's input buffers, after fetching those that its worker does not hold."""
        found: list[tuple[int | None, ...]] = []
        fetched: dict[tuple[int, int, Region, int], int] = {}
        for task, worker in enumerate(operator.workers):
            inputs: list[int | None] = []
            for read in reads:
                if read is None:
                    inputs.append(None)
                    continue
                tensor, assembly = read.tensor, read.fetches[task]
                if isinstance(assembly, int):
                    inputs.append(read.holders[assembly][1])
                    continue
                key = worker, tensor, read.needed.regions[task], read.term[task]
                buffer = fetched.get(key)
                if buffer is None:
                    buffer = self._buffer(tensor, read.needed, task, BufferKind.FETCHED)
                    fetched[key] = buffer
                    pieces = self._pieces(assembly, tensor, read.holders)
                    self.instructions[worker].append(MultiFetch(operation, buffer, pieces, self.tick))
                inputs.append(buffer)
            found.append(tuple(inputs))
        return found

    def _compute(
        self,
        operation: int,
        operator: OperatorRegions,
        inputs: Sequence[tuple[int | None, ...]],
        produced: Sequence[Sequence[Held]],
    ) -> int:
        """Append every task; those of one worker follow each other. Return the last tick."""
        ticks: dict[int, int] = {}
        for task, worker in enumerate(operator.workers):
            tick = ticks[worker] = ticks.get(worker, self.tick) + 1
            self.instructions[worker].append(
                Compute(
                    operation,
                    operator.boxes[task],
                    inputs[task],
                    operator.reads[task],
                    tuple([held[task][1] for held in produced]),
                    tick,
                )
            )
        return max(ticks.values())

    def _output_buffers(
        self,
        operation: Operation,
        operator: OperatorRegions,
        tensor: int,
        output: int,
        inputs: Sequence[tuple[int | None, ...]],
    ) -> list[Held]:
        """Choose where each task computes an output: in a holding, or in a buffer that holders collect from.

        A holding that the task also reads may be overwritten only if each element is read only at the index
        that is written. One that another task of the worker reads may not be overwritten.
        """
        made = operator.outputs[output]
        homes = self.home(tensor)
        names = operation.bound.description.tensor_names
        elsewhere = [position for position, name in enumerate(names) if name not in operation.bound.in_place]
        found = []
        for task, number in enumerate(self._movements.kept(made, self._owned[tensor])):
            if number is not None:
                held = homes[number]
                own = [inputs[task][position] for position in elsewhere]
                others = [inputs[other] for other in operator.siblings[task]]
                if not any(held[1] in read for read in (own, *others)):
                    found.append(held)
                    continue
            found.append((made.workers[task], self._buffer(tensor, made, task, BufferKind.PARTIAL)))
        return found

    def _collect(
        self, operation: Operation, operator: OperatorRegions, tensor: int, output: int, produced: list[Held]
    ) -> None:
        """Assemble or reduce every holding of an output that no task computed in place."""
        if set(self.home(tensor)) <= set(produced):
            return
        made, home = (operator.outputs[output], produced), self._version(tensor, 0)
        stop = self._regions.stops[tensor]
        if stop is not None and made[0].terms > home[0].terms:
            between = stop, self._buffers_for(tensor, stop, BufferKind.COPY)
            self._fill(operation, tensor, made, between)
            self.tick += 1
            made = between
        self._fill(operation, tensor, made, home)

    def _fill(self, operation: Operation, tensor: int, made: _Holdings, wanted: _Holdings) -> None:
        """Fill holdings from others, those that are among the others excepted."""
        done = set(made[1])
        collections = self._movements.collections(made[0], wanted[0])
        for (worker, target), assemblies in zip(wanted[1], collections, strict=True):
            if (worker, target) in done:
                continue
            parts = tuple([self._pieces(part, tensor, made[1]) for part in assemblies])
            self.instructions[worker].append(
                MultiFetch(operation.index, target, parts[0], self.tick)
                if len(parts) == 1
                else Reduce(operation.index, target, self._regions.reducer(tensor), parts, self.tick)
            )

    def _pieces(self, assembly: Assembly, tensor: int, holders: Sequence[Held]) -> tuple[Piece, ...]:
        """Return the parts as pieces of the holders' buffers, and count the bytes fetched."""
        self.planned_bytes += assembly.fetched_elements * self._tensors[tensor].itemsize
        return tuple([Piece(*holders[number], region) for number, region in assembly.parts])


def buffer_kind(held: WorkerRegions, kind: BufferKind) -> BufferKind:
    """Return the kind of the buffers of holdings: partial if they are terms, else the one given."""
    return BufferKind.PARTIAL if held.terms > 1 else kind


@dataclass(frozen=True, slots=True)
class _Read:
    """An input of an operation."""

    tensor: int
    """The tensor's number in the graph."""

    needed: WorkerRegions
    """The regions that the tasks need."""

    term: tuple[int, ...]
    """The term that each task reads; 0 if the tensor is reduced."""

    holders: Sequence[Held]
    """The buffers that hold the version that is read."""

    fetches: Fetches
    """Where each task finds its region, or the parts that its worker fetches."""
