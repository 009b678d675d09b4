"""Check lowered programs: follow the contents of every buffer, instruction by instruction.

Instructions are followed in the order of the clock; `check_memory` proves that no run departs from it. A
buffer holds a value: a tensor, or some terms of it that are to be combined. An instruction that reads a
buffer must find there the value that the graph asks for, and the whole region. The boxes of an operation's
computations must tile its iteration space, apart from replicas on other workers, and at the end every tensor
must be at home.

Terms are sets of atoms. An atom is a part of the operation's own reduction together with an atom of an input,
for an operation that reads terms of its inputs; such an operation must be linear in them. The value is whole
if it has all atoms, so no term can be missing, and two terms that have an atom in common cannot be combined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from ..analyzer.indices.region import Region, to_region
from ..dataflow.graph import Graph, Operation, Tensor
from ..errors import ProgramError
from ..tdl.ast import AnyReducer, Reducer
from .plain_regions import check_tiling, inside, shown, size
from .program import Buffer, Compute, Held, MultiFetch, PartitionedGraph, Piece, Reduce

ADVICE = (
    "lower the plan again with tofu.lower; if these programs came from there, report it as a defect of Tofu"
)


Atoms = frozenset[object]


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor, or some terms of it."""

    tensor: int
    """The tensor's number in the graph."""

    atoms: Atoms | None = None
    """The atoms of the terms; None if the value is the whole tensor."""


@dataclass(slots=True)
class _Computes:
    """All computations of one operation, in the order of the clock."""

    own: set[Region]
    """The parts of the operation's own reductions that they compute."""

    inputs: dict[str, list[Region]]
    """For each parameter, the regions that they read."""

    outputs: list[list[Region]]
    """For each output, the regions that they make."""

    reducers: set[AnyReducer | None]
    """The reducers that combine what the parts of the operation's own reductions make."""

    atoms: Atoms = frozenset()
    """All atoms of the outputs."""

    partial: frozenset[str] = frozenset()
    """The parameters that are read in terms."""

    read: dict[Atoms, list[int]] = field(default_factory=dict)
    """The numbers of the computations that read each term of these."""

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
        produced = self._maker = {t: each.index for each in graph.operations for t in each.outputs}
        for worker in range(program.workers):
            for number, buffer in enumerate(program.programs[worker].buffers):
                self._check_buffer(worker, number, buffer)
        for tensor in graph.tensors:
            homes = program.homes[tensor.index]
            if tensor.alias is not None:
                self._check_alias(tensor, graph.tensors[tensor.alias])
            if tensor.index not in produced:
                self._check_home(tensor, homes)
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
        self._computes = [self._analysed(operation) for operation in graph.operations]

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
        for operation, computes in zip(self._graph.operations, self._computes, strict=True):
            if computes.partial:
                self._check_terms_read(operation, computes)
        updated = {tensor.alias for tensor in self._graph.tensors}
        for tensor in self._graph.tensors:
            if tensor.index in self._maker and tensor.index not in updated:
                self._check_made(tensor)

    def _check_made(self, tensor: Tensor) -> None:
        """Check that a tensor is at home: whole, or in terms that cover it together."""
        terms: dict[Atoms | None, list[Held]] = {}
        for home in self._program.homes[tensor.index]:
            held = self._holds.get(home)
            whole = None in terms or tensor.role.persistent or tensor.index in self._graph.outputs
            if held is None or held.tensor != tensor.index or (held.atoms is not None and whole):
                raise ProgramError(
                    f"tensor {tensor.name!r} is not at home on worker {home[0]} at the end: buffer "
                    f"{home[1]} holds {self._shown(held)}"
                )
            terms.setdefault(held.atoms, []).append(home)
        if terms.keys() - {None}:
            place = f"the home of tensor {tensor.name!r}"
            found = self._sum([_Value(tensor.index, atoms) for atoms in terms], place)
            if found.atoms is not None:
                raise ProgramError(f"{place} has only {self._shown(found)} at the end")
        for homes in terms.values():
            self._check_home(tensor, homes)

    def _check_home(self, tensor: Tensor, homes: Sequence[Held]) -> None:
        buffers = [self._buffer(*home) for home in homes]
        other = next((b for b in buffers if self._root(b.tensor) != self._root(tensor.index)), None)
        if other is not None:
            name = self._graph.tensors[other.tensor].name
            raise ProgramError(f"the home of tensor {tensor.name!r} has a buffer for {name!r}")
        whole = tuple((0, extent) for extent in tensor.shape)
        check_tiling(whole, [buffer.region for buffer in buffers], f"the home of tensor {tensor.name!r}")

    def _check_terms_read(self, operation: Operation, computes: _Computes) -> None:
        """Check that an operation reads every term once, and covers its iteration space for each."""
        tasks = self._places[operation.index]
        for numbers in computes.read.values():
            _check_tasks(operation, [tasks[number] for number in numbers])
        place, seen = f"operation {operation.name!r}", set[object]()
        for read in computes.read:
            if seen & read:
                raise ProgramError(f"{place}: reads some terms of its inputs in two ways")
            seen |= read
        if seen != self._readable(operation, computes.partial):
            raise ProgramError(f"{place}: does not read all terms of its inputs")

    def _readable(self, operation: Operation, partial: Iterable[str]) -> set[object]:
        """Return all atoms of the inputs that are read in terms."""
        made = dict(zip(operation.bound.description.tensor_names, operation.inputs, strict=True))
        return {(name, atom) for name in partial for atom in self._computes[self._maker[made[name]]].atoms}

    def _shown(self, value: _Value | None) -> str:
        """Return a buffer's contents in words."""
        if value is None:
            return "nothing"
        name = repr(self._graph.tensors[value.tensor].name)
        if value.atoms is None:
            return name
        terms = self._computes[self._maker[value.tensor]].atoms
        return f"{len(value.atoms)} of {len(terms)} terms of {name}"

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
        if not 0 <= buffer.tensor < len(self._graph.tensors):
            raise ProgramError(
                f"worker {worker}: buffer {number} is for tensor {buffer.tensor}; the graph has "
                f"{len(self._graph.tensors)}"
            )
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

    def _analysed(self, operation: Operation) -> _Computes:
        """Analyse what an operation's computations touch."""
        bound, place = operation.bound, f"operation {operation.name!r}"
        whole = tuple((0, extent) for extent in bound.extents.values())
        computes = self._places[operation.index]
        regions = [compute.box for _, compute in computes]
        if not computes:
            raise ProgramError(f"{place}: no worker computes it")
        wrong = next((box for box in regions if len(box) != len(whole)), None)
        if wrong is not None:
            raise ProgramError(f"{place}: the box {shown(wrong)} is not one of {len(whole)} variables")
        outside = next((box for box in regions if not inside(box, whole)), None)
        if outside is not None:
            raise ProgramError(f"{place}, its iterations: {shown(outside)} lies outside {shown(whole)}")
        boxes = np.array(regions, np.int64).reshape(len(computes), len(whole), 2)
        inputs = bound.input_regions(boxes)
        return _Computes(
            {_own_term(operation, compute) for _, compute in computes},
            {name: [to_region(region) for region in inputs[name]] for name in bound.reads},
            [[to_region(region) for region in made] for made in bound.output_regions(boxes)],
            {
                bound.reducer(variable)
                for axis, variable in enumerate(bound.variables)
                if bound.kind(variable) == "reduce" and len({box[axis] for box in regions}) > 1
            },
        )

    def _begin(self, operation: Operation, computes: _Computes, partial: frozenset[str], place: str) -> None:
        """Check an operation before its first computation: its tasks, or that it may read terms."""
        computes.partial = partial
        if not partial:
            _check_tasks(operation, self._places[operation.index])
            computes.atoms = frozenset((own,) for own in computes.own)
            return
        types = {self._graph.tensors[tensor].dtype for tensor in operation.outputs}
        names = operation.bound.description.tensor_names
        for name, tensor in zip(names, operation.inputs, strict=True):
            types |= {self._graph.tensors[tensor].dtype} if name in partial else set()
        if len(types) > 1 or not operation.bound.linear_in(partial):
            listed = ", ".join(sorted(partial))
            raise ProgramError(f"{place}: reads terms of {listed}, but is not linear in that")
        for name, tensor in zip(names, operation.inputs, strict=True):
            if name in partial and self._reducers(tensor) != {Reducer.SUM}:
                combined = " and ".join(sorted(map(str, self._reducers(tensor))))
                what = repr(self._graph.tensors[tensor].name)
                raise ProgramError(f"{place}: reads terms of {what}, which are combined by {combined}")
        read = self._readable(operation, partial)
        computes.atoms = frozenset((own, each) for own in computes.own for each in read)

    def _compute(self, operation: Operation, worker: int, compute: Compute, place: str) -> None:
        """Check one computation's reads and writes."""
        computes = self._computes[operation.index]
        number = computes.followed
        computes.followed += 1
        regions = {name: found[number] for name, found in computes.inputs.items()}
        terms = self._check_reads(operation, worker, compute, regions, place)
        if len(compute.outputs) != len(operation.outputs):
            raise ProgramError(f"{place}: writes {len(compute.outputs)} of {len(operation.outputs)} outputs")
        if not number:
            self._begin(operation, computes, frozenset(terms), place)
        for name, tensor in zip(operation.bound.description.tensor_names, operation.inputs, strict=True):
            if name in computes.partial ^ terms.keys():
                value = self._shown(_Value(tensor, terms.get(name)))
                raise ProgramError(f"{place}: reads {value}, unlike the operation's other computations")
        own = _own_term(operation, compute)
        atoms: Atoms = frozenset([(own,)])
        if terms:
            read = frozenset((name, atom) for name, found in terms.items() for atom in found)
            computes.read.setdefault(read, []).append(number)
            atoms = frozenset((own, each) for each in read)
        term = None if atoms == computes.atoms else atoms
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
    ) -> dict[str, Atoms]:
        """Check that every region that is read is stated, and that its buffer holds it.

        Return the terms that are read of tensors that are not whole.
        """
        terms: dict[str, Atoms] = {}
        names = operation.bound.description.tensor_names
        for count in (len(compute.inputs), len(compute.input_regions)):
            if count != len(names):
                raise ProgramError(f"{place}: lists {count} inputs, but the description {len(names)}")
        for position, (name, tensor) in enumerate(zip(names, operation.inputs, strict=True)):
            if name not in regions:
                continue
            region, buffer = regions[name], compute.inputs[position]
            stated = compute.input_regions[position]
            if buffer is None or stated != region:
                found = "nothing" if buffer is None or stated is None else shown(stated)
                raise ProgramError(f"{place}: reads {found} of {name!r}, but its box needs {shown(region)}")
            held, there = self._holds.get((worker, buffer)), self._buffer(worker, buffer).region
            if held is None or held.tensor != tensor or not inside(region, there):
                raise ProgramError(
                    f"{place}: reads {shown(region)} of {self._shown(_Value(tensor))} from buffer {buffer}, "
                    f"which holds {shown(there)} of {self._shown(held)}"
                )
            if held.atoms is not None:
                terms[name] = held.atoms
        return terms

    def _reduce(self, operation: Operation, worker: int, reduce: Reduce, place: str) -> None:
        target = self._target(operation, worker, reduce.target, place)
        values = [self._assemble(worker, target, part, place) for part in reduce.parts]
        value = self._sum(values, place)
        allowed = self._reducers(value.tensor)
        if allowed != {reduce.reducer}:
            stated = " and ".join(sorted(map(str, allowed)))
            raise ProgramError(f"{place}: reduces by {reduce.reducer}, but the description by {stated}")
        self._fill((worker, reduce.target), value, place)

    def _reducers(self, tensor: int) -> set[AnyReducer | None]:
        """Return the reducers that combine terms of a tensor; programs can combine by one only."""
        maker = self._computes[self._maker[tensor]]
        return maker.reducers | ({Reducer.SUM} if maker.partial else set())

    def _sum(self, values: Sequence[_Value], place: str) -> _Value:
        """Return the value that different terms of one tensor make together."""
        tensors = sorted({value.tensor for value in values})
        if len(tensors) != 1:
            names = ", ".join(repr(self._graph.tensors[tensor].name) for tensor in tensors)
            raise ProgramError(f"{place}: combines {names or 'nothing'}, not terms of one tensor")
        found: set[object] = set()
        for value in values:
            if value.atoms is None or found & value.atoms:
                raise ProgramError(f"{place}: combines {self._shown(value)} with what has it already")
            found |= value.atoms
        whole = self._computes[self._maker[tensors[0]]].atoms
        return _Value(tensors[0], None if found == whole else frozenset(found))


def _check_tasks(operation: Operation, computes: Sequence[tuple[int, Compute]]) -> None:
    """Check that computations tile an operation's iteration space, apart from replicas elsewhere."""
    place = f"operation {operation.name!r}"
    whole = tuple((0, extent) for extent in operation.bound.extents.values())
    check_tiling(whole, [compute.box for _, compute in computes], f"{place}, its iterations")
    if len({(worker, compute.box) for worker, compute in computes}) != len(computes):
        raise ProgramError(f"{place}: a worker computes the same part twice")


def _own_term(operation: Operation, compute: Compute) -> Region:
    """Return the part of an operation's reductions that a computation covers."""
    bound = operation.bound
    return tuple(
        interval
        for interval, variable in zip(compute.box, bound.variables, strict=True)
        if bound.kind(variable) == "reduce"
    )
