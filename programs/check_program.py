"""Check lowered programs: follow the contents of every buffer, instruction by instruction.

Instructions are followed in the order of the clock; `check_memory` proves that no run departs from it. A
buffer holds a value: a tensor, or one term of a reduction of it. An instruction that reads a buffer must find
there the value that the graph asks for, and the whole region. The boxes of an operation's computations must
tile its iteration space, apart from replicas on other workers, and at the end every tensor must be at home.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from ..analyzer.indices.region import Region, to_region
from ..dataflow.graph import Graph, Operation, Tensor
from ..errors import ProgramError
from .plain_regions import check_tiling, inside, shown, size
from .program import Buffer, Compute, Held, MultiFetch, PartitionedGraph, Piece, Reduce

ADVICE = (
    "lower the plan again with tofu.lower; if these programs came from there, report it as a defect of Tofu"
)


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor, or one term of its reduction."""

    tensor: int
    """The tensor's number in the graph."""

    term: Region = ()
    """The part of the reduction that the term covers; empty if the value is the whole tensor."""


@dataclass(slots=True)
class _Computes:
    """All computations of one operation, in the order of the clock."""

    terms: set[Region]
    """The parts of the reduction that they compute."""

    inputs: dict[str, list[Region]]
    """For each parameter, the regions that they read."""

    outputs: list[list[Region]]
    """For each output, the regions that they make."""

    followed: int = 0
    """The number of computations that have been followed."""


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
    if len(program.homes) != len(graph.tensors):
        raise ProgramError(
            f"the program lists homes of {len(program.homes)} tensors; the graph has {len(graph.tensors)}"
        )
    walk = _Walk(graph, program)
    walk.run()
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
        self._holds: dict[Held, _Value] = {}
        produced = {tensor for operation in graph.operations for tensor in operation.outputs}
        for worker in range(program.workers):
            for number, buffer in enumerate(program.programs[worker].buffers):
                self._check_buffer(worker, number, buffer)
        for tensor in graph.tensors:
            homes = program.homes[tensor.index]
            regions = [self._buffer(*home).region for home in homes]
            check_tiling(
                tuple((0, extent) for extent in tensor.shape), regions, f"the home of tensor {tensor.name!r}"
            )
            if tensor.alias is not None:
                self._check_alias(tensor, graph.tensors[tensor.alias])
            if tensor.index not in produced:
                self._holds |= {home: _Value(tensor.index) for home in homes}
        self._order = sorted(
            (each.tick, worker, index)
            for worker, one in enumerate(program.programs)
            for index, each in enumerate(one.instructions)
        )
        self._places: list[list[tuple[int, Compute]]] = [[] for _ in graph.operations]
        for _, worker, index in self._order:
            instruction = program.programs[worker].instructions[index]
            if not 0 <= instruction.operation < len(graph.operations):
                raise ProgramError(
                    f"worker {worker}: instruction {index} belongs to operation {instruction.operation}; the "
                    f"graph has {len(graph.operations)}"
                )
            if isinstance(instruction, Compute):
                self._places[instruction.operation].append((worker, instruction))
        self._computes = [self._tiled(operation) for operation in graph.operations]

    def run(self) -> None:
        for _, worker, index in self._order:
            instruction = self._program.programs[worker].instructions[index]
            operation = self._graph.operations[instruction.operation]
            place = f"operation {operation.name!r}, instruction {index} of worker {worker}"
            match instruction:
                case Compute():
                    self._compute(operation, worker, instruction, place)
                case MultiFetch(target=number, pieces=pieces):
                    target = self._target(operation, worker, number, place)
                    self._fill((worker, number), self._assemble(worker, target, pieces, place), place)
                case Reduce():
                    self._reduce(operation, worker, instruction, place)
                case _:
                    assert_never(instruction)

    def finish(self) -> None:
        updated = {tensor.alias for tensor in self._graph.tensors}
        for tensor in self._graph.tensors:
            for home in self._program.homes[tensor.index]:
                held = self._holds.get(home)
                if tensor.index not in updated and held != _Value(tensor.index):
                    raise ProgramError(
                        f"tensor {tensor.name!r} is not at home on worker {home[0]} at the end: buffer "
                        f"{home[1]} holds {self._shown(held)}"
                    )

    def _shown(self, value: _Value | None) -> str:
        """Return a buffer's contents in words."""
        if value is None:
            return "nothing"
        name = repr(self._graph.tensors[value.tensor].name)
        return f"the term {shown(value.term)} of {name}" if value.term else name

    def _buffer(self, worker: int, number: int) -> Buffer:
        programs = self._program.programs
        if not 0 <= worker < len(programs):
            raise ProgramError(f"there is no worker {worker}; workers are numbered 0 to {len(programs) - 1}")
        buffers = programs[worker].buffers
        if not 0 <= number < len(buffers):
            raise ProgramError(f"worker {worker} has no buffer {number}; it has {len(buffers)} buffers")
        return buffers[number]

    def _check_alias(self, tensor: Tensor, overwritten: Tensor) -> None:
        """Check that a tensor has the home of the one that it overwrites."""
        own, other = self._program.homes[tensor.index], self._program.homes[overwritten.index]
        if own != other:
            raise ProgramError(
                f"the home of tensor {tensor.name!r} differs from that of {overwritten.name!r}, which it "
                f"overwrites: their (worker, buffer) pairs are {own} and {other}"
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

    def _target(self, operation: Operation, worker: int, number: int, place: str) -> Buffer:
        """Return the buffer that a transfer fills; it holds a tensor of the operation."""
        target = self._buffer(worker, number)
        roots = {self._root(tensor) for tensor in (*operation.inputs, *operation.outputs)}
        if self._root(target.tensor) not in roots:
            name = self._graph.tensors[target.tensor].name
            raise ProgramError(f"{place}: moves {name!r}, which the operation neither reads nor makes")
        return target

    def _root(self, tensor: int) -> int:
        """Return the tensor whose memory a tensor is in."""
        while (alias := self._graph.tensors[tensor].alias) is not None:
            tensor = alias
        return tensor

    def _assemble(self, worker: int, target: Buffer, pieces: Iterable[Piece], place: str) -> _Value:
        """Check that pieces tile a target and hold one value; count what crosses; return the value."""
        value: _Value | None = None
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
        if value is not None and self._root(value.tensor) != self._root(target.tensor):
            name = self._graph.tensors[target.tensor].name
            raise ProgramError(f"{place}: moves {self._shown(value)} into a buffer for {name!r}")
        return value or _Value(target.tensor)

    def _fill(self, target: Held, value: _Value, place: str) -> None:
        """Record what a transfer puts into a buffer."""
        if self._holds.get(target) == value:
            raise ProgramError(f"{place}: fills buffer {target[1]} with {self._shown(value)} a second time")
        self._holds[target] = value

    def _tiled(self, operation: Operation) -> _Computes:
        """Check that an operation's computations tile its iteration space, and analyse what they touch."""
        bound, place = operation.bound, f"operation {operation.name!r}"
        whole = tuple((0, extent) for extent in bound.extents.values())
        computes = self._places[operation.index]
        regions = [compute.box for _, compute in computes]
        if not computes:
            raise ProgramError(f"{place}: no worker computes it")
        wrong = next((box for box in regions if len(box) != len(whole)), None)
        if wrong is not None:
            raise ProgramError(f"{place}: the box {shown(wrong)} is not one of {len(whole)} variables")
        check_tiling(whole, regions, f"{place}, its iterations")
        if len({(worker, compute.box) for worker, compute in computes}) != len(computes):
            raise ProgramError(f"{place}: a worker computes the same part twice")
        boxes = np.array(regions, np.int64).reshape(len(computes), len(whole), 2)
        inputs = bound.input_regions(boxes)
        return _Computes(
            {_term(operation, compute) for _, compute in computes},
            {name: [to_region(region) for region in inputs[name]] for name in bound.reads},
            [[to_region(region) for region in made] for made in bound.output_regions(boxes)],
        )

    def _compute(self, operation: Operation, worker: int, compute: Compute, place: str) -> None:
        """Check one computation's reads and writes."""
        computes = self._computes[operation.index]
        number = computes.followed
        computes.followed += 1
        regions = {name: found[number] for name, found in computes.inputs.items()}
        self._check_reads(operation, worker, compute, regions, place)
        if len(compute.outputs) != len(operation.outputs):
            raise ProgramError(f"{place}: writes {len(compute.outputs)} of {len(operation.outputs)} outputs")
        term = _term(operation, compute) if len(computes.terms) > 1 else ()
        for made, tensor, output in zip(computes.outputs, operation.outputs, compute.outputs, strict=True):
            buffer, name = self._buffer(worker, output), self._graph.tensors[tensor].name
            if buffer.region != made[number] or self._root(buffer.tensor) != self._root(tensor):
                other = self._graph.tensors[buffer.tensor].name
                raise ProgramError(
                    f"{place}: writes {shown(made[number])} of {name!r} into buffer {output}, which is for "
                    f"{shown(buffer.region)} of {other!r}"
                )
            self._holds[worker, output] = _Value(tensor, term)

    def _check_reads(
        self, operation: Operation, worker: int, compute: Compute, regions: Mapping[str, Region], place: str
    ) -> None:
        """Check that every region that is read is stated, and that its buffer holds it."""
        names = operation.bound.description.tensor_names
        for position, (name, tensor) in enumerate(zip(names, operation.inputs, strict=True)):
            if name not in regions:
                continue
            region, buffer = regions[name], compute.inputs[position]
            stated = compute.input_regions[position]
            if buffer is None or stated != region:
                found = "nothing" if buffer is None or stated is None else shown(stated)
                raise ProgramError(f"{place}: reads {found} of {name!r}, but its box needs {shown(region)}")
            held, there = self._holds.get((worker, buffer)), self._buffer(worker, buffer).region
            if held != _Value(tensor) or not inside(region, there):
                raise ProgramError(
                    f"{place}: reads {shown(region)} of {self._shown(_Value(tensor))} from buffer {buffer}, "
                    f"which holds {shown(there)} of {self._shown(held)}"
                )

    def _reduce(self, operation: Operation, worker: int, reduce: Reduce, place: str) -> None:
        bound, target = operation.bound, self._target(operation, worker, reduce.target, place)
        allowed = {bound.reducer(v) for v in bound.variables if bound.kind(v) == "reduce"}
        if reduce.reducer not in allowed:
            stated = " or ".join(sorted(map(str, allowed))) or "nothing"
            raise ProgramError(f"{place}: reduces by {reduce.reducer}, but the description by {stated}")
        values = [self._assemble(worker, target, part, place) for part in reduce.parts]
        terms, tensors = self._computes[operation.index].terms, {value.tensor for value in values}
        if len(tensors) != 1 or not tensors <= set(operation.outputs):
            names = ", ".join(repr(self._graph.tensors[tensor].name) for tensor in sorted(tensors))
            raise ProgramError(f"{place}: reduces {names or 'nothing'}, not one output of the operation")
        if {value.term for value in values} != terms or len(reduce.parts) != len(terms):
            raise ProgramError(
                f"{place}: reduces {len(reduce.parts)} parts, but there are {len(terms)} terms"
            )
        self._fill((worker, reduce.target), _Value(tensors.pop()), place)


def _term(operation: Operation, compute: Compute) -> Region:
    """Return the part of an operation's reductions that a computation covers."""
    bound = operation.bound
    return tuple(
        interval
        for interval, variable in zip(compute.box, bound.variables, strict=True)
        if bound.kind(variable) == "reduce"
    )
