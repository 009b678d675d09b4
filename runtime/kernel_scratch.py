"""Find the workspace that the processor's kernels need for programs, before anything has memory.

Kernels are prepared as in `preparation`, on arrays that nobody touches, and equal calls only once. Two calls
are equal if their operators, boxes and the layouts of their arrays are. If a description uses an index
variable for nothing but to index certain dimensions of tensors, its derived kernel does not depend on where
the variable's interval starts. So calls whose boxes differ by a shift along such variables are equal, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..analyzer.indices.region import Interval, Region, Shape
from ..dataflow.element_types import MIXED
from ..operators.kernels.kernel import Array
from ..operators.kernels.workspace import Workspace
from ..programs.memory import MemoryPlan
from ..programs.program import Compute, Lane, MultiFetch, PartitionedGraph, Reduce, lane_of
from ..tdl.ast import Description, Element, Index, Variable
from ..tdl.traverse import variable_names, walk
from .buffer_views import BufferViews
from .collectives import FetchedBytes, Transfer, fixed_order_reduce

Views = Mapping[int, Mapping[int, Array]]


@dataclass(frozen=True, slots=True)
class _Need:
    """The memory of one kernel."""

    scratch_bytes: int
    """The scratch that it takes while it runs."""

    kept_bytes: int
    """The size of the values that it keeps between runs."""


class KernelScratch:
    """The workspace of the processor's kernels. Equal calls are prepared once, also if programs share them.

    Graphs with tensors of 16 bits run on cards only; for them the workspace counts as nothing.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Need] = {}

    def workspace_bytes(self, partitioned: PartitionedGraph, memory: MemoryPlan) -> tuple[int, ...]:
        """Return the workspace of each worker, as the processor's engine reports it."""
        if any(tensor.dtype in MIXED for tensor in partitioned.graph.tensors):
            return (0,) * partitioned.workers
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
        shifts = _shifts(bound)
        box = dict(zip(bound.variables, instruction.box, strict=True))
        names = bound.description.tensor_names
        reads = tuple(
            None
            if buffer is None or region is None
            else (self._form(self.worker, buffer), _relative(region, shifts.dimensions.get(name, {})))
            for name, buffer, region in zip(names, instruction.inputs, instruction.input_regions, strict=True)
        )
        writes = tuple(self._form(self.worker, buffer) for buffer in instruction.outputs)
        intervals = tuple(
            _length(interval) if variable in shifts.variables else interval
            for variable, interval in box.items()
        )
        used = [*instruction.inputs, *instruction.outputs]
        places = [None if buffer is None else self.offsets[buffer] for buffer in used]
        return bound, intervals, reads, writes, tuple(map(places.index, places))

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
        views, workspace = self._views(arrays), Workspace()
        terms = [
            [
                Transfer(
                    views.part(piece.worker, piece.buffer, piece.region),
                    views.part(self.worker, instruction.target, piece.region),
                    remote=False,
                )
                for piece in part
            ]
            for part in instruction.parts
        ]
        fixed_order_reduce(instruction.reducer, terms, FetchedBytes(), workspace)
        return _Need(workspace.used_bytes, 0)

    def _form(self, worker: int, buffer: int) -> Hashable:
        held = self.partitioned.programs[worker].buffers[buffer]
        return _lengths(held.region), self.partitioned.graph.tensors[held.tensor].dtype

    def _nbytes(self, worker: int, buffer: int) -> int:
        return self.partitioned.programs[worker].buffers[buffer].nbytes

    def _array(self, worker: int, buffer: int, memory: Array) -> Array:
        held = self.partitioned.programs[worker].buffers[buffer]
        array: Array = memory.view(self.partitioned.graph.tensors[held.tensor].dtype)
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
