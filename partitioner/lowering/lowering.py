"""Lower a graph and its plan to one instruction list per worker (Tofu, section 6).

For worker `w` and an operation that reads inputs at `R[w]` and produces outputs at `P[w]`, with tensors owned
at `T[w]`:

    fetch      R[w]              into a buffer, unless T[w] contains it
    compute    P[w] from R[w]    into the shard if P[w] == T[w], otherwise into a buffer
    collect    T[w]              from the P of others, or by reducing one P for each term

`R`, `P` and `T` follow from the strategies and layouts of the plan (`costs.movement.Movements`). Covers of a
region by what workers hold are disjoint (`costs.cover`), so every element is moved once.

Assumes: the plan is legal for the graph (`Plan.verify`). Guarantees: the order of instructions that
`programs.program` describes, and as many fetched bytes as the plan states. `programs.check_program` checks
both. Implemented in: `_fetch_inputs`, `_output_buffers` (where an output is computed), `_collect`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...analyzer.indices.region import Region
from ...dataflow.graph import Graph, Operation
from ...programs.program import (
    Buffer,
    BufferKind,
    Compute,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
    Reduce,
)
from ...support.gc_pause import gc_paused
from ..costs.movement import Assembly, Fetches, Movements, OperatorRegions, WorkerRegions
from ..plans.plan import Plan

NO_BUFFER = -1


@gc_paused()
def lower(graph: Graph, plan: Plan) -> PartitionedGraph:
    """Make the programs that run `graph` as `plan` says.

    `planned_bytes` are counted from the pieces and equal `plan.cost_bytes`. Raises PlanError if the plan is
    not for this graph.
    """
    plan.check_graph(graph)
    lowering = _Lowering(graph, plan)
    for operation in graph.operations:
        lowering.add(operation)
    return lowering.finish()


class _Lowering:
    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph = graph
        self._plan = plan
        self._workers = range(plan.workers)
        self._movements = Movements(plan.factors)
        self._buffers: list[list[Buffer]] = [[] for _ in self._workers]
        self._instructions: list[list[Instruction]] = [[] for _ in self._workers]
        self._owned = [self._movements.layout(plan.layouts[tensor.name]) for tensor in graph.tensors]
        self._itemsize = [tensor.itemsize for tensor in graph.tensors]
        self._planned_bytes = 0
        self._shards: list[tuple[int, ...]] = []
        for tensor in graph.tensors:
            self._shards.append(
                self._make_shards(tensor.index) if tensor.alias is None else self._shards[tensor.alias]
            )

    def finish(self) -> PartitionedGraph:
        programs = tuple(
            Program(w, tuple(self._buffers[w]), tuple(self._instructions[w])) for w in self._workers
        )
        return PartitionedGraph(
            self._graph, self._plan.workers, programs, tuple(self._shards), self._planned_bytes
        )

    def add(self, operation: Operation) -> None:
        """Append one operation to every worker's list: fetch, compute, collect."""
        operator = self._movements.operator(operation.bound, self._plan.strategies[operation.name])
        names = operation.bound.description.tensor_names
        reads = [
            self._read(operator.inputs.get(name), tensor)
            for name, tensor in zip(names, operation.inputs, strict=True)
        ]
        computes = [self._fetch_inputs(operation.index, reads, w) for w in self._workers]
        produced = [
            self._output_buffers(operation, operator, tensor, output, computes)
            for output, tensor in enumerate(operation.outputs)
        ]
        for w in self._workers:
            self._instructions[w].append(
                Compute(
                    operation.index,
                    operator.boxes[w],
                    computes[w],
                    tuple([None if read is None else read.needed.regions[w] for read in reads]),
                    tuple([buffers[w] for buffers in produced]),
                )
            )
        for output, tensor in enumerate(operation.outputs):
            self._collect(operation, operator, tensor, output, produced[output])

    def _read(self, needed: WorkerRegions | None, tensor: int) -> _Read | None:
        if needed is None:
            return None
        return _Read(tensor, needed, self._movements.fetches(needed, self._owned[tensor]))

    def _make_shards(self, tensor: int) -> tuple[int, ...]:
        owned = self._owned[tensor]
        return tuple(
            [
                self._buffer(w, tensor, owned, BufferKind.SHARD) if owned.elements[w] else NO_BUFFER
                for w in self._workers
            ]
        )

    def _buffer(self, worker: int, tensor: int, held: WorkerRegions, kind: BufferKind) -> int:
        buffers = self._buffers[worker]
        index = len(buffers)
        nbytes = held.elements[worker] * self._itemsize[tensor]
        buffers.append(Buffer(index, tensor, held.regions[worker], kind, nbytes))
        return index

    def _fetch_inputs(
        self, operation: int, reads: Sequence[_Read | None], worker: int
    ) -> tuple[int | None, ...]:
        """Return the buffer of every input, after fetching those that are not in the worker's shards."""
        inputs: list[int | None] = []
        fetched: dict[tuple[int, Region], int] = {}
        for read in reads:
            if read is None:
                inputs.append(None)
                continue
            tensor, assembly = read.tensor, read.fetches[worker]
            if assembly is None:
                inputs.append(self._shards[tensor][worker])
                continue
            region = read.needed.regions[worker]
            buffer = fetched.get((tensor, region))
            if buffer is None:
                buffer = self._buffer(worker, tensor, read.needed, BufferKind.FETCHED)
                fetched[tensor, region] = buffer
                pieces = self._pieces(assembly, tensor, self._shards[tensor])
                self._instructions[worker].append(MultiFetch(operation, buffer, pieces))
            inputs.append(buffer)
        return tuple(inputs)

    def _output_buffers(
        self,
        operation: Operation,
        operator: OperatorRegions,
        tensor: int,
        output: int,
        computes: list[tuple[int | None, ...]],
    ) -> list[int]:
        """Choose where each worker computes an output: its shard, or a buffer that the owners collect from.

        A shard that the operation also reads may be overwritten only if each element is read only at the
        index that is written.
        """
        owned, made = self._owned[tensor], operator.outputs[output]
        names = operation.bound.description.tensor_names
        elsewhere = [position for position, name in enumerate(names) if name not in operation.bound.in_place]
        buffers = []
        for w, shard in enumerate(self._shards[tensor]):
            direct = (
                operator.reducer is None
                and shard != NO_BUFFER
                and made.regions[w] == owned.regions[w]
                and all(computes[w][position] != shard for position in elsewhere)
            )
            buffers.append(shard if direct else self._buffer(w, tensor, made, BufferKind.PARTIAL))
        return buffers

    def _collect(
        self, operation: Operation, operator: OperatorRegions, tensor: int, output: int, produced: list[int]
    ) -> None:
        """Assemble or reduce every owner's shard from what the workers computed."""
        shards = self._shards[tensor]
        if tuple(produced) == shards:
            return
        collections = self._movements.collections(operator, output, self._owned[tensor])
        for w, shard in enumerate(shards):
            if shard == NO_BUFFER or shard == produced[w]:
                continue
            parts = tuple([self._pieces(part, tensor, produced) for part in collections[w]])
            self._instructions[w].append(
                MultiFetch(operation.index, shard, parts[0])
                if operator.reducer is None
                else Reduce(operation.index, shard, operator.reducer, parts)
            )

    def _pieces(self, assembly: Assembly, tensor: int, buffers: Sequence[int]) -> tuple[Piece, ...]:
        """Return the parts as pieces of the buffers that hold the tensor, and count the bytes fetched."""
        self._planned_bytes += assembly.fetched_elements * self._itemsize[tensor]
        return tuple([Piece(source, buffers[source], region) for source, region in assembly.parts])


@dataclass(frozen=True, slots=True)
class _Read:
    """An input of an operation."""

    tensor: int
    """The tensor's number in the graph."""

    needed: WorkerRegions
    """The regions that the workers need."""

    fetches: Fetches
    """The parts of them that the workers fetch."""
