"""Find the workspace that the processor's kernels need for programs, before anything has memory.

Kernels are prepared as in `preparation`, on arrays that nobody touches, and equal calls only once. Two calls
are equal if their operators, boxes and the layouts of their arrays are. If a description uses an index
variable for nothing but to index certain dimensions of tensors, its derived kernel does not depend on where
the variable's interval starts. So calls whose boxes differ by a shift along such variables are equal, too.

A kernel takes no less scratch if its arrays are parts of larger ones than on arrays of its own, which need no
packed copies. So the scratch on such arrays is a bound for every plan in which a worker computes the box
(`alone_bytes`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..analyzer.bind.bound import Bound
from ..analyzer.indices.region import Interval, Region, Shape
from ..dataflow.graph import Graph, Operation
from ..operators.kernels.kernel import Array, KernelCall
from ..operators.kernels.workspace import Workspace
from ..programs.memory import MemoryPlan
from ..programs.program import Compute, Lane, MultiFetch, PartitionedGraph, Reduce, lane_of
from ..tdl.ast import Description, Element, Index, Variable
from ..tdl.traverse import variable_names, walk
from .buffer_views import BufferViews
from .collectives import FetchedBytes
from .reductions import reduction

Views = Mapping[int, Mapping[int, Array]]


@dataclass(frozen=True, slots=True)
class _Need:
    """The memory of one kernel."""

    scratch_bytes: int
    """The scratch that it takes while it runs."""

    kept_bytes: int
    """The size of the values that it keeps between runs."""


class KernelScratch:
    """The workspace of the kernels. Equal calls are prepared once, also if programs share them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Need] = {}

    def workspace_bytes(self, partitioned: PartitionedGraph, memory: MemoryPlan) -> tuple[int, ...]:
        """Return the workspace of each worker, as the processor's engine reports it."""
        return tuple(
            self._of_worker(partitioned, offsets, worker) for worker, offsets in enumerate(memory.offsets)
        )

    def _of_worker(self, partitioned: PartitionedGraph, offsets: tuple[int, ...], worker: int) -> int:
        calls = _Calls(partitioned, offsets, worker)
        scratch = [0] * len(Lane)
        kept: dict[Hashable, int] = {}
        for instruction in partitioned.programs[worker].instructions:
            match instruction:
                case Compute(box=box, input_regions=regions):
                    key = calls.compute_key(instruction)
                    need = self._known.get(key) or calls.compute_need(instruction)
                    if need.kept_bytes:
                        kept[key, box, regions] = need.kept_bytes
                case Reduce():
                    key = calls.reduce_key(instruction)
                    need = self._known.get(key) or calls.reduce_need(instruction)
                case MultiFetch():
                    continue
            self._known[key] = need
            lane = lane_of(instruction)
            scratch[lane] = max(scratch[lane], need.scratch_bytes)
        return sum(scratch) + sum(kept.values())

    def alone_bytes(
        self,
        graph: Graph,
        operation: Operation,
        box: Region,
        inputs: Mapping[str, Region],
        outputs: tuple[Region, ...],
        shared: Collection[int],
    ) -> int:
        """Return the scratch of a kernel on arrays of its own: no kernel for the box takes less.

        `inputs` are the regions that the box reads, `outputs` those that it produces. The outputs in `shared`
        lie in the memory of the tensors that they overwrite.
        """
        bound, tensors = operation.bound, graph.tensors
        tensor_of = {name: operation.inputs[place] for place, name in bound.read_places}
        arrays = {
            name: np.empty(_lengths(region), measured_as(tensors[tensor_of[name]].dtype))
            for name, region in inputs.items()
        }
        made = []
        for number, (region, output) in enumerate(zip(outputs, operation.outputs, strict=True)):
            over = [
                name
                for name, read in inputs.items()
                if number in shared and tensor_of[name] == tensors[output].alias and read == region
            ]
            made.append(
                arrays[over[0]] if over else np.empty(_lengths(region), measured_as(tensors[output].dtype))
            )
        names = bound.description.tensor_names
        used = [*(arrays.get(name) for name in names), *made]
        reads = [
            ((array.shape, array.dtype.name), inputs[name]) if array is not None else None
            for name, array in zip(names, used, strict=False)
        ]
        places = [None if array is None else id(array) for array in used]
        key = _compute_key(bound, box, reads, [(array.shape, array.dtype.name) for array in made], places)
        if key not in self._known:
            workspace = Workspace()
            of_box = dict(zip(bound.variables, box, strict=True))
            bound.prepare(KernelCall(bound, of_box, arrays, inputs, tuple(made), workspace))
            self._known[key] = _Need(workspace.used_bytes, workspace.kept_bytes)
        return self._known[key].scratch_bytes


def measured_as(dtype: str) -> np.dtype[Any]:
    """Return a type whose kernels take as much memory: float16 for bfloat16, which NumPy lacks."""
    return np.dtype("float16" if dtype == "bfloat16" else dtype)


def _compute_key(
    bound: Bound,
    box: Region,
    reads: Sequence[tuple[Hashable, Region] | None],
    writes: Sequence[Hashable],
    places: list[int | None],
) -> Hashable:
    """Return what a kernel's memory depends on: its box, and its arrays with their places in memory."""
    shifts = _shifts(bound)
    intervals = tuple(
        _length(interval) if variable in shifts.variables else interval
        for variable, interval in zip(bound.variables, box, strict=True)
    )
    relative = tuple(
        None if each is None else (each[0], _relative(each[1], shifts.dimensions.get(name, {})))
        for name, each in zip(bound.description.tensor_names, reads, strict=True)
    )
    return bound, intervals, relative, tuple(writes), tuple(map(places.index, places))


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one worker."""

    partitioned: PartitionedGraph
    """The programs."""

    offsets: tuple[int, ...]
    """The offset of each of the worker's buffers."""

    worker: int
    """The worker's number."""

    def compute_key(self, instruction: Compute) -> Hashable:
        """Return what a kernel's memory depends on."""
        bound = self.partitioned.graph.operations[instruction.operation].bound
        reads = [
            None if buffer is None or region is None else (self._form(self.worker, buffer), region)
            for buffer, region in zip(instruction.inputs, instruction.input_regions, strict=True)
        ]
        writes = [self._form(self.worker, buffer) for buffer in instruction.outputs]
        used = [*instruction.inputs, *instruction.outputs]
        places = [None if buffer is None else self.offsets[buffer] for buffer in used]
        return _compute_key(bound, instruction.box, reads, writes, places)

    def compute_need(self, instruction: Compute) -> _Need:
        """Prepare a kernel on arrays that share memory as they do in the arena."""
        buffers = {b for b in (*instruction.inputs, *instruction.outputs) if b is not None}
        size = {buffer: self._nbytes(self.worker, buffer) for buffer in buffers}
        memory = {
            place: np.empty(max(size[b] for b in buffers if self.offsets[b] == place), np.uint8)
            for place in {self.offsets[buffer] for buffer in buffers}
        }
        arrays = {b: self._array(self.worker, b, memory[self.offsets[b]][: size[b]]) for b in buffers}
        workspace = Workspace()
        bound = self.partitioned.graph.operations[instruction.operation].bound
        bound.prepare(self._views({self.worker: arrays}).call(self.worker, instruction, workspace))
        return _Need(workspace.used_bytes, workspace.kept_bytes)

    def reduce_key(self, instruction: Reduce) -> Hashable:
        """Return what the memory of a reduction depends on."""
        terms = tuple(
            tuple((self._form(piece.worker, piece.buffer), _lengths(piece.region)) for piece in part)
            for part in instruction.parts
        )
        return instruction.reducer, self._form(self.worker, instruction.target), terms

    def reduce_need(self, instruction: Reduce) -> _Need:
        """Prepare a reduction."""
        held = {(p.worker, p.buffer) for part in instruction.parts for p in part}
        held.add((self.worker, instruction.target))
        arrays: dict[int, dict[int, Array]] = {}
        for worker, buffer in held:
            memory = np.empty(self._nbytes(worker, buffer), np.uint8)
            arrays.setdefault(worker, {})[buffer] = self._array(worker, buffer, memory)
        workspace = Workspace()
        reduction(self._views(arrays), self.worker, instruction, FetchedBytes(), workspace)
        return _Need(workspace.used_bytes, 0)

    def _form(self, worker: int, buffer: int) -> Hashable:
        held = self.partitioned.programs[worker].buffers[buffer]
        return _lengths(held.region), self.partitioned.graph.tensors[held.tensor].dtype

    def _nbytes(self, worker: int, buffer: int) -> int:
        return self.partitioned.programs[worker].buffers[buffer].nbytes

    def _array(self, worker: int, buffer: int, memory: Array) -> Array:
        held = self.partitioned.programs[worker].buffers[buffer]
        array: Array = memory.view(measured_as(self.partitioned.graph.tensors[held.tensor].dtype))
        return array.reshape(_lengths(held.region))

    def _views(self, arrays: Views) -> BufferViews[Array]:
        views: Any = arrays
        return BufferViews(self.partitioned, views)


@dataclass(frozen=True, slots=True)
class _Shifts:
    """The variables along which a derived kernel may be shifted."""

    variables: frozenset[str]
    """Their names."""

    dimensions: Mapping[str, Mapping[int, str]]
    """For each tensor, the dimensions that they index."""


NO_SHIFTS = _Shifts(frozenset(), {})


@lru_cache(maxsize=4096)
def _shifts_of(description: Description) -> _Shifts:
    """Return the variables that only index dimensions of tensors, which nothing else indexes."""
    reads: dict[tuple[str, int], list[Index]] = {}
    mentioned: dict[str, int] = {}
    for node in walk(description):
        match node:
            case Element(tensor=tensor, indices=indices):
                for dimension, index in enumerate(indices):
                    reads.setdefault((tensor, dimension), []).append(index)
            case Variable(name=name):
                mentioned[name] = mentioned.get(name, 0) + 1
            case _:
                pass
    alone = {place: each for place, each in reads.items() if isinstance(each[0], Variable) and _equal(each)}
    for each in alone.values():
        for index in each:
            mentioned[variable_names(index).pop()] -= 1
    free = {name for name, count in mentioned.items() if not count}
    dimensions: dict[str, dict[int, str]] = {}
    for (tensor, dimension), each in alone.items():
        name = variable_names(each[0]).pop()
        if name in free:
            dimensions.setdefault(tensor, {})[dimension] = name
    return _Shifts(frozenset(free), dimensions)


def _shifts(bound: Any) -> _Shifts:
    """Return the variables along which an operator's kernel may be shifted: none if it is attached."""
    return _shifts_of(bound.description) if bound.kernel is None else NO_SHIFTS


def _equal(indices: list[Index]) -> bool:
    return all(index == indices[0] for index in indices)


def _relative(region: Region, shifted: Mapping[int, str]) -> Hashable:
    """Return a region with lengths in place of intervals along dimensions that may be shifted."""
    return tuple(
        _length(interval) if dimension in shifted else interval for dimension, interval in enumerate(region)
    )


def _lengths(region: Region) -> Shape:
    return tuple(map(_length, region))


def _length(interval: Interval) -> int:
    return interval[1] - interval[0]
