"""Check lowered programs: follow the contents of every buffer, instruction by instruction.

For each operation, all workers fetch, then compute, then collect. A `PartitionedGraph` promises no other
order. A buffer holds a value: a tensor, or one term of a reduction of it. An instruction that reads a buffer
must find there the value that the graph asks for, and the whole region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Region, to_region
from ..dataflow.graph import Graph, Operation
from ..errors import ProgramError
from .plain_regions import check_tiling, inside, size
from .program import Buffer, Compute, Instruction, MultiFetch, PartitionedGraph, Piece, Reduce


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor, or one term of its reduction."""

    tensor: int
    """The tensor's number in the graph."""

    term: Region = ()
    """The part of the reduction that the term covers; empty if the value is the whole tensor."""


def check_program(graph: Graph, workers: int, cost_bytes: int, program: PartitionedGraph) -> None:
    """Raise ProgramError naming the first instruction that contradicts the graph.

    `cost_bytes` is the cost that the plan states; the pieces that cross between workers must add up to it.
    """
    if program.workers != workers or len(program.programs) != workers:
        raise ProgramError(f"there are {len(program.programs)} programs for {workers} workers")
    if len(program.shards) != len(graph.tensors):
        raise ProgramError(
            f"the program lists shards of {len(program.shards)} tensors; the graph has {len(graph.tensors)}"
        )
    walk = _Walk(graph, program)
    for operation in graph.operations:
        walk.run(operation)
    walk.finish()
    if not walk.fetched_bytes == program.planned_bytes == cost_bytes:
        raise ProgramError(
            f"the programs fetch {walk.fetched_bytes} bytes and state {program.planned_bytes}; "
            f"the plan states {cost_bytes}"
        )


class _Walk:
    def __init__(self, graph: Graph, program: PartitionedGraph) -> None:
        self.fetched_bytes = 0
        self._graph = graph
        self._program = program
        self._itemsize = [tensor.itemsize for tensor in graph.tensors]
        self._next = [0] * program.workers
        self._holds: dict[tuple[int, int], _Value] = {}
        self._shards = {(w, b) for shards in program.shards for w, b in enumerate(shards)}
        produced = {tensor for operation in graph.operations for tensor in operation.outputs}
        for worker in range(program.workers):
            for number, buffer in enumerate(program.programs[worker].buffers):
                self._check_buffer(worker, number, buffer)
        for tensor in graph.tensors:
            shards = program.shards[tensor.index]
            place = f"shards of tensor {tensor.name!r}"
            owned = [self._buffer(w, shard).region for w, shard in enumerate(shards) if shard >= 0]
            check_tiling(tuple((0, extent) for extent in tensor.shape), owned, place)
            if tensor.alias is not None and shards != program.shards[tensor.alias]:
                raise ProgramError(f"{place} differ from those of the tensor that it overwrites")
            if tensor.index not in produced:
                self._holds |= {(w, b): _Value(tensor.index) for w, b in enumerate(shards) if b >= 0}

    def run(self, operation: Operation) -> None:
        taken = [self._take(worker, operation.index) for worker in range(self._program.workers)]
        place = f"operation {operation.name!r}"
        computes: list[Compute] = []
        for worker, instructions in enumerate(taken):
            positions = [i for i, instruction in enumerate(instructions) if isinstance(instruction, Compute)]
            if len(positions) != 1:
                raise ProgramError(
                    f"{place}, worker {worker}: computed {len(positions)} times instead of once"
                )
            for instruction in instructions[: positions[0]]:
                self._fetch(operation, worker, instruction, f"{place}, worker {worker}")
            compute = instructions[positions[0]]
            assert isinstance(compute, Compute)
            computes.append(compute)
        terms = self._compute(operation, computes, place)
        for worker, instructions in enumerate(taken):
            after = instructions[instructions.index(computes[worker]) + 1 :]
            self._collect(operation, worker, after, terms, f"{place}, worker {worker}")

    def finish(self) -> None:
        for worker, program in enumerate(self._program.programs):
            if self._next[worker] != len(program.instructions):
                raise ProgramError(
                    f"worker {worker} has instructions outside the order of the graph's operations"
                )
        updated = {tensor.alias for tensor in self._graph.tensors}
        for tensor in self._graph.tensors:
            for worker, shard in enumerate(self._program.shards[tensor.index]):
                held = self._holds.get((worker, shard))
                if shard >= 0 and tensor.index not in updated and held != _Value(tensor.index):
                    raise ProgramError(
                        f"tensor {tensor.name!r} is not in its shard on worker {worker} at the end"
                    )

    def _take(self, worker: int, operation: int) -> Sequence[Instruction]:
        instructions = self._program.programs[worker].instructions
        start = stop = self._next[worker]
        while stop < len(instructions) and instructions[stop].operation == operation:
            stop += 1
        self._next[worker] = stop
        return instructions[start:stop]

    def _buffer(self, worker: int, number: int) -> Buffer:
        programs = self._program.programs
        if not (0 <= worker < len(programs) and 0 <= number < len(programs[worker].buffers)):
            raise ProgramError(f"worker {worker} has no buffer {number}")
        return programs[worker].buffers[number]

    def _check_buffer(self, worker: int, number: int, buffer: Buffer) -> None:
        tensor = self._graph.tensors[buffer.tensor]
        whole = tuple((0, extent) for extent in tensor.shape)
        needed = size(buffer.region) * self._itemsize[buffer.tensor]
        if buffer.index != number or not inside(buffer.region, whole) or buffer.nbytes != needed:
            raise ProgramError(
                f"worker {worker}: buffer {number} does not hold a region of tensor "
                f"{tensor.name!r} with that region's number of bytes"
            )

    def _fetch(self, operation: Operation, worker: int, instruction: Instruction, place: str) -> None:
        if not isinstance(instruction, MultiFetch):
            raise ProgramError(f"{place}: something other than a fetch comes before the computation")
        target = self._buffer(worker, instruction.target)
        if target.tensor not in operation.inputs or (worker, instruction.target) in self._shards:
            raise ProgramError(f"{place}: fetches a tensor that is not its input, or overwrites a shard")
        self._assemble(worker, target, instruction.pieces, _Value(target.tensor), place)
        self._holds[worker, instruction.target] = _Value(target.tensor)

    def _assemble(
        self, worker: int, target: Buffer, pieces: Iterable[Piece], value: _Value | None, place: str
    ) -> _Value | None:
        """Check that pieces tile a target and hold one value; count what crosses; return the value."""
        regions = []
        for piece in pieces:
            source = self._buffer(piece.worker, piece.buffer)
            held = self._holds.get((piece.worker, piece.buffer))
            value = held if value is None else value
            if held is None or held != value or not inside(piece.region, source.region):
                raise ProgramError(
                    f"{place}: reads {piece.region} from buffer {piece.buffer} of worker {piece.worker}, "
                    f"which does not hold that region or value"
                )
            regions.append(piece.region)
            if piece.worker != worker:
                self.fetched_bytes += size(piece.region) * self._itemsize[target.tensor]
        if len(set(regions)) != len(regions):
            raise ProgramError(f"{place}: the same region is fetched twice into one buffer")
        check_tiling(target.region, regions, f"{place}, a fetched region")
        return value

    def _compute(self, operation: Operation, computes: Sequence[Compute], place: str) -> set[Region]:
        """Check every worker's reads and writes; return the terms of the reduction that they compute."""
        bound, names = operation.bound, operation.bound.description.tensor_names
        whole = tuple((0, extent) for extent in bound.extents.values())
        check_tiling(whole, [compute.box for compute in computes], f"{place}, its iterations")
        boxes = np.array([compute.box for compute in computes], np.int64).reshape(
            len(computes), len(whole), 2
        )
        inputs, outputs = bound.input_regions(boxes), bound.output_regions(boxes)
        reductions = [
            axis for axis, variable in enumerate(bound.variables) if bound.kind(variable) == "reduce"
        ]
        written: dict[tuple[int, int], _Value] = {}
        terms = {tuple(compute.box[axis] for axis in reductions) for compute in computes}
        for worker, compute in enumerate(computes):
            here = f"{place}, worker {worker}"
            for position, (name, tensor) in enumerate(zip(names, operation.inputs, strict=True)):
                if name not in bound.reads:
                    continue
                region, buffer = to_region(inputs[name][worker]), compute.inputs[position]
                if buffer is None or compute.input_regions[position] != region:
                    raise ProgramError(f"{here}: does not read {name!r} at {region}")
                holds = self._holds.get((worker, buffer))
                if holds != _Value(tensor) or not inside(region, self._buffer(worker, buffer).region):
                    raise ProgramError(f"{here}: {name!r} at {region} is neither owned nor fetched")
            if len(compute.outputs) != len(operation.outputs):
                raise ProgramError(
                    f"{here}: writes {len(compute.outputs)} of {len(operation.outputs)} outputs"
                )
            term = tuple(compute.box[axis] for axis in reductions) if len(terms) > 1 else ()
            for produced, tensor, number in zip(outputs, operation.outputs, compute.outputs, strict=True):
                if self._buffer(worker, number).region != to_region(produced[worker]):
                    raise ProgramError(f"{here}: writes an output into a buffer that holds another region")
                written[worker, number] = _Value(tensor, term)
        self._holds |= written
        return terms

    def _collect(
        self,
        operation: Operation,
        worker: int,
        instructions: Sequence[Instruction],
        terms: set[Region],
        place: str,
    ) -> None:
        shards = {self._program.shards[t][worker]: t for t in operation.outputs}
        collected: dict[int, int] = {}
        for instruction in instructions:
            if isinstance(instruction, Compute) or instruction.target not in shards:
                raise ProgramError(f"{place}: collects into a buffer that is not a shard of an output")
            tensor, target = shards[instruction.target], self._buffer(worker, instruction.target)
            if isinstance(instruction, MultiFetch):
                if len(terms) != 1:
                    raise ProgramError(f"{place}: fetches {len(terms)} partial results without reducing them")
                self._assemble(worker, target, instruction.pieces, _Value(tensor), place)
            else:
                self._reduce(operation, worker, instruction, tensor, terms, place)
            collected[instruction.target] = tensor
        if len(collected) != len(instructions):
            raise ProgramError(f"{place}: collects the same shard twice")
        for shard, tensor in shards.items():
            if shard in collected:
                self._holds[worker, shard] = _Value(tensor)
            elif shard >= 0 and self._holds.get((worker, shard)) != _Value(tensor):
                raise ProgramError(
                    f"{place}: no instruction puts {self._graph.tensors[tensor].name!r} into its shard"
                )

    def _reduce(
        self, operation: Operation, worker: int, reduce: Reduce, tensor: int, terms: set[Region], place: str
    ) -> None:
        bound, target = operation.bound, self._buffer(worker, reduce.target)
        if reduce.reducer not in {bound.reducer(v) for v in bound.variables if bound.kind(v) == "reduce"}:
            raise ProgramError(f"{place}: reduces by {reduce.reducer}, unlike the description")
        values = [self._assemble(worker, target, part, None, place) for part in reduce.parts]
        found = {value.term for value in values if value is not None and value.tensor == tensor}
        if found != terms or len(reduce.parts) != len(terms):
            raise ProgramError(
                f"{place}: reduces {len(reduce.parts)} parts, but there are {len(terms)} terms"
            )
