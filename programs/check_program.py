"""Check lowered programs: follow the contents of every buffer, instruction by instruction.

For each operation, all workers fetch, then compute, then collect. A `PartitionedGraph` promises no other
order. A buffer holds a value: a tensor, or one term of a reduction of it. An instruction that reads a buffer
must find there the value that the graph asks for, and the whole region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Region, to_region
from ..dataflow.graph import Graph, Operation, Tensor
from ..errors import ProgramError
from .plain_regions import check_tiling, inside, shown, size
from .program import Buffer, Compute, Instruction, MultiFetch, PartitionedGraph, Piece, Reduce

ADVICE = (
    "lower the plan again with tofu.lower; if these programs came from there, report it as a defect of Tofu"
)

Numbered = Sequence[tuple[int, Instruction]]
"""Instructions with their numbers in their worker's list."""


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
    try:
        _check(graph, workers, cost_bytes, program)
    except ProgramError as error:
        raise ProgramError(f"{error}; {ADVICE}") from error


def _check(graph: Graph, workers: int, cost_bytes: int, program: PartitionedGraph) -> None:
    if program.workers != workers or len(program.programs) != workers:
        raise ProgramError(
            f"the plan is for {workers} workers, but there are {len(program.programs)} programs for "
            f"{program.workers} workers"
        )
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
            if tensor.alias is not None:
                self._check_alias(tensor, graph.tensors[tensor.alias])
            if tensor.index not in produced:
                self._holds |= {(w, b): _Value(tensor.index) for w, b in enumerate(shards) if b >= 0}

    def run(self, operation: Operation) -> None:
        taken = [self._take(worker, operation.index) for worker in range(self._program.workers)]
        computes: list[tuple[int, Compute]] = []
        for worker, numbered in enumerate(taken):
            found = [(index, each) for index, each in numbered if isinstance(each, Compute)]
            if len(found) != 1:
                raise ProgramError(
                    f"operation {operation.name!r}, worker {worker}: computed {len(found)} times, expected "
                    "once"
                )
            for index, instruction in numbered:
                if index < found[0][0]:
                    self._fetch(operation, worker, instruction, _place(operation, worker, index))
            computes += found
        terms = self._compute(operation, computes)
        for worker, numbered in enumerate(taken):
            after = [(index, each) for index, each in numbered if index > computes[worker][0]]
            self._collect(operation, worker, after, terms)

    def finish(self) -> None:
        for worker, program in enumerate(self._program.programs):
            if self._next[worker] != len(program.instructions):
                place = self._next[worker]
                raise ProgramError(
                    f"worker {worker}: instruction {place} is of operation number "
                    f"{program.instructions[place].operation}, outside the order of the graph's operations"
                )
        updated = {tensor.alias for tensor in self._graph.tensors}
        for tensor in self._graph.tensors:
            for worker, shard in enumerate(self._program.shards[tensor.index]):
                held = self._holds.get((worker, shard))
                if shard >= 0 and tensor.index not in updated and held != _Value(tensor.index):
                    raise ProgramError(
                        f"tensor {tensor.name!r} is not in its shard on worker {worker} at the end: buffer "
                        f"{shard} holds {self._shown(held)}"
                    )

    def _shown(self, value: _Value | None) -> str:
        """Return a buffer's contents in words."""
        if value is None:
            return "nothing"
        name = repr(self._graph.tensors[value.tensor].name)
        return f"the term {shown(value.term)} of {name}" if value.term else name

    def _take(self, worker: int, operation: int) -> Numbered:
        instructions = self._program.programs[worker].instructions
        start = stop = self._next[worker]
        while stop < len(instructions) and instructions[stop].operation == operation:
            stop += 1
        self._next[worker] = stop
        return list(enumerate(instructions[start:stop], start))

    def _buffer(self, worker: int, number: int) -> Buffer:
        programs = self._program.programs
        if not 0 <= worker < len(programs):
            raise ProgramError(f"there is no worker {worker}; workers are numbered 0 to {len(programs) - 1}")
        buffers = programs[worker].buffers
        if not 0 <= number < len(buffers):
            raise ProgramError(f"worker {worker} has no buffer {number}; it has {len(buffers)} buffers")
        return buffers[number]

    def _check_alias(self, tensor: Tensor, overwritten: Tensor) -> None:
        """Check that a tensor has the shards of the one that it overwrites."""
        pairs = zip(self._program.shards[tensor.index], self._program.shards[overwritten.index], strict=True)
        for worker, (own, other) in enumerate(pairs):
            if own != other:
                raise ProgramError(
                    f"the shards of tensor {tensor.name!r} differ from those of {overwritten.name!r}, which "
                    f"it overwrites: on worker {worker} they are the buffers {own} and {other}"
                )

    def _check_buffer(self, worker: int, number: int, buffer: Buffer) -> None:
        tensor = self._graph.tensors[buffer.tensor]
        whole = tuple((0, extent) for extent in tensor.shape)
        needed = size(buffer.region) * self._itemsize[buffer.tensor]
        if buffer.index != number:
            raise ProgramError(f"worker {worker}: buffer {number} is numbered {buffer.index}")
        if not inside(buffer.region, whole):
            raise ProgramError(
                f"worker {worker}: buffer {number} holds {shown(buffer.region)} of tensor {tensor.name!r}, "
                f"which has only {shown(whole)}"
            )
        if buffer.nbytes != needed:
            raise ProgramError(
                f"worker {worker}: buffer {number} has {buffer.nbytes} bytes, but {shown(buffer.region)} of "
                f"tensor {tensor.name!r} needs {needed}"
            )

    def _fetch(self, operation: Operation, worker: int, instruction: Instruction, place: str) -> None:
        if not isinstance(instruction, MultiFetch):
            raise ProgramError(
                f"{place}: a {type(instruction).__name__} comes before the computation, where only a "
                "MultiFetch may be"
            )
        target = self._buffer(worker, instruction.target)
        name = self._graph.tensors[target.tensor].name
        if target.tensor not in operation.inputs:
            inputs = ", ".join(repr(self._graph.tensors[tensor].name) for tensor in operation.inputs)
            raise ProgramError(f"{place}: fetches {name!r}, but the inputs are {inputs or 'none'}")
        if (worker, instruction.target) in self._shards:
            raise ProgramError(
                f"{place}: fetches into buffer {instruction.target}, which is the shard of {name!r}"
            )
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
                wanted = self._shown(value or _Value(target.tensor))
                raise ProgramError(
                    f"{place}: reads {shown(piece.region)} of {wanted} from buffer {piece.buffer} of worker "
                    f"{piece.worker}, which holds {shown(source.region)} of {self._shown(held)}"
                )
            regions.append(piece.region)
            if piece.worker != worker:
                self.fetched_bytes += size(piece.region) * self._itemsize[target.tensor]
        if len(set(regions)) != len(regions):
            twice = next(region for region in regions if regions.count(region) > 1)
            raise ProgramError(f"{place}: fetches {shown(twice)} twice into one buffer")
        check_tiling(target.region, regions, f"{place}, a fetched region")
        return value

    def _compute(self, operation: Operation, numbered: Sequence[tuple[int, Compute]]) -> set[Region]:
        """Check every worker's reads and writes; return the terms of the reduction that they compute."""
        bound, computes = operation.bound, [compute for _, compute in numbered]
        whole = tuple((0, extent) for extent in bound.extents.values())
        check_tiling(
            whole, [compute.box for compute in computes], f"operation {operation.name!r}, its iterations"
        )
        boxes = np.array([compute.box for compute in computes], np.int64).reshape(
            len(computes), len(whole), 2
        )
        inputs, outputs = bound.input_regions(boxes), bound.output_regions(boxes)
        reductions = [
            axis for axis, variable in enumerate(bound.variables) if bound.kind(variable) == "reduce"
        ]
        written: dict[tuple[int, int], _Value] = {}
        terms = {tuple(compute.box[axis] for axis in reductions) for compute in computes}
        for worker, (index, compute) in enumerate(numbered):
            here = _place(operation, worker, index)
            regions = {name: to_region(found[worker]) for name, found in inputs.items()}
            self._check_reads(operation, worker, compute, regions, here)
            if len(compute.outputs) != len(operation.outputs):
                raise ProgramError(
                    f"{here}: writes {len(compute.outputs)} of {len(operation.outputs)} outputs"
                )
            term = tuple(compute.box[axis] for axis in reductions) if len(terms) > 1 else ()
            for produced, tensor, number in zip(outputs, operation.outputs, compute.outputs, strict=True):
                made, held = to_region(produced[worker]), self._buffer(worker, number).region
                if held != made:
                    name = self._graph.tensors[tensor].name
                    raise ProgramError(
                        f"{here}: writes {shown(made)} of {name!r} into buffer {number}, which is for "
                        f"{shown(held)}"
                    )
                written[worker, number] = _Value(tensor, term)
        self._holds |= written
        return terms

    def _check_reads(
        self, operation: Operation, worker: int, compute: Compute, regions: Mapping[str, Region], here: str
    ) -> None:
        """Check that every region that is read is stated, and that its buffer holds it."""
        bound = operation.bound
        names = bound.description.tensor_names
        for position, (name, tensor) in enumerate(zip(names, operation.inputs, strict=True)):
            if name not in bound.reads:
                continue
            region, buffer = regions[name], compute.inputs[position]
            stated = compute.input_regions[position]
            if buffer is None or stated != region:
                found = "nothing" if buffer is None or stated is None else shown(stated)
                raise ProgramError(f"{here}: reads {found} of {name!r}, but its box needs {shown(region)}")
            held, there = self._holds.get((worker, buffer)), self._buffer(worker, buffer).region
            if held != _Value(tensor) or not inside(region, there):
                raise ProgramError(
                    f"{here}: reads {shown(region)} of {self._shown(_Value(tensor))} from buffer {buffer}, "
                    f"which holds {shown(there)} of {self._shown(held)}"
                )

    def _collect(self, operation: Operation, worker: int, numbered: Numbered, terms: set[Region]) -> None:
        shards = {self._program.shards[t][worker]: t for t in operation.outputs}
        collected: dict[int, int] = {}
        for index, instruction in numbered:
            place = _place(operation, worker, index)
            assert not isinstance(instruction, Compute), "there is one, and it comes before"
            if instruction.target not in shards:
                raise ProgramError(
                    f"{place}: collects into buffer {instruction.target}, but the shards of its outputs are "
                    f"the buffers {sorted(buffer for buffer in shards if buffer >= 0)}"
                )
            tensor, target = shards[instruction.target], self._buffer(worker, instruction.target)
            if instruction.target in collected:
                name = self._graph.tensors[tensor].name
                raise ProgramError(f"{place}: collects the shard of {name!r} a second time")
            if isinstance(instruction, MultiFetch):
                if len(terms) != 1:
                    raise ProgramError(f"{place}: fetches {len(terms)} partial results without reducing them")
                self._assemble(worker, target, instruction.pieces, _Value(tensor), place)
            else:
                self._reduce(operation, worker, instruction, tensor, terms, place)
            collected[instruction.target] = tensor
        for shard, tensor in shards.items():
            if shard in collected:
                self._holds[worker, shard] = _Value(tensor)
            elif shard >= 0 and self._holds.get((worker, shard)) != _Value(tensor):
                raise ProgramError(
                    f"operation {operation.name!r}, worker {worker}: no instruction puts "
                    f"{self._graph.tensors[tensor].name!r} into its shard, buffer {shard}"
                )

    def _reduce(
        self, operation: Operation, worker: int, reduce: Reduce, tensor: int, terms: set[Region], place: str
    ) -> None:
        bound, target = operation.bound, self._buffer(worker, reduce.target)
        allowed = {bound.reducer(v) for v in bound.variables if bound.kind(v) == "reduce"}
        if reduce.reducer not in allowed:
            stated = " or ".join(sorted(map(str, allowed))) or "nothing"
            raise ProgramError(f"{place}: reduces by {reduce.reducer}, but the description by {stated}")
        values = [self._assemble(worker, target, part, None, place) for part in reduce.parts]
        found = {value.term for value in values if value is not None and value.tensor == tensor}
        if found != terms or len(reduce.parts) != len(terms):
            raise ProgramError(
                f"{place}: reduces {len(reduce.parts)} parts, but there are {len(terms)} terms"
            )


def _place(operation: Operation, worker: int, index: int) -> str:
    return f"operation {operation.name!r}, instruction {index} of worker {worker}"
