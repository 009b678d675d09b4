"""Prepare a worker: allocate its memory, and bind its instructions to that memory as functions.

The instructions of a lane share one workspace, because they run one after the other. Its size is measured
first: every instruction is prepared on separate scratch, and those that took any are prepared again in the
shared workspace. The workspaces of lanes that one thread serves lie in the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import assert_never

import numpy as np

from ..dataflow.element_types import storage_type
from ..errors import ExecutionError
from ..operators.kernels.kernel import Array
from ..operators.kernels.workspace import Scratch, Workspace, aligned
from ..programs.guarded_memory import BAND_BYTES
from ..programs.memory import MemoryPlan
from ..programs.offsets import ALIGNMENT_BYTES
from ..programs.program import (
    Compute,
    Instruction,
    Lane,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Reduce,
    lane_of,
)
from ..programs.schedule import LaneOf
from ..support.gc_pause import gc_paused
from .buffer_views import BufferViews
from .collectives import FetchedBytes, Step, Transfer, multi_fetch
from .reductions import reduction
from .scratch_bands import watched_scratch

Buffers = Sequence[Sequence[Array]]

NOT_SHARED: Mapping[LaneOf, Scratch] = MappingProxyType({})
"""Every lane has memory of its own for scratch."""


@dataclass(frozen=True, slots=True)
class PreparedSteps:
    """One worker's prepared instructions."""

    steps: tuple[Step, ...]
    """The step of each instruction."""

    traffic: FetchedBytes
    """Counts the bytes that the steps fetch."""

    workspaces: tuple[Workspace, ...]
    """The workspace that the instructions of each lane share."""

    @property
    def workspace_bytes(self) -> int:
        """Count the scratch that the worker's lanes share, and the values that kernels keep between runs."""
        return sum(each.block.nbytes + each.kept_bytes for each in self.workspaces)


def prepare(
    partitioned: PartitionedGraph,
    buffers: Buffers,
    worker: int,
    guard_scratch: bool = False,
    scratch: Mapping[LaneOf, Scratch] = NOT_SHARED,
) -> PreparedSteps:
    """Bind a worker's instructions to `buffers[worker][buffer]`.

    `scratch` has the memory of lanes that share it. If `guard_scratch`, a step raises ExecutionError if its
    kernel writes outside its scratch memory. Raises ExecutionError that names the worker and the operation if
    a kernel cannot be prepared.
    """
    with gc_paused():
        return _Preparation(partitioned, buffers, worker, guard_scratch).run(scratch)


def place_of(partitioned: PartitionedGraph, worker: int, index: int) -> str:
    """Describe an instruction, for messages."""
    instruction = partitioned.programs[worker].instructions[index]
    operation = partitioned.graph.operations[instruction.operation]
    return f"worker {worker}, operation '{operation.name}' ({type(instruction).__name__})"


@contextmanager
def errors_named(partitioned: PartitionedGraph, worker: int, index: int) -> Iterator[None]:
    """Turn errors in the preparation of an instruction into an ExecutionError that names it."""
    try:
        yield
    except Exception as error:
        place = place_of(partitioned, worker, index)
        raise ExecutionError(f"{place}, in preparation: {type(error).__name__}: {error}") from error


def allocate(partitioned: PartitionedGraph, memory: MemoryPlan) -> list[Array]:
    """Allocate one zeroed arena per worker, as bytes.

    They lie one after the other in one block, which NumPy asks the system to keep on large pages.
    """
    sizes = [aligned(arena_bytes) for arena_bytes in memory.arena_bytes]
    try:
        block = np.zeros(sum(sizes) + ALIGNMENT_BYTES, np.uint8)
    except MemoryError:
        raise ExecutionError(
            f"there is no memory for the arenas of {len(sizes)} workers, {sum(sizes)} bytes; use a machine "
            "with more memory, several machines, or a smaller batch"
        ) from None
    start = -block.ctypes.data % ALIGNMENT_BYTES
    starts = accumulate(sizes, initial=start)
    return [block[at : at + nbytes] for at, nbytes in zip(starts, memory.arena_bytes, strict=False)]


def buffers_in(
    partitioned: PartitionedGraph, memory: MemoryPlan, arenas: Sequence[Array]
) -> list[list[Array]]:
    """Return every buffer's view of its worker's arena."""
    return [
        [
            arena[offset : offset + buffer.nbytes]
            .view(storage_type(partitioned.graph.tensors[buffer.tensor].dtype))
            .reshape([upper - lower for lower, upper in buffer.region])
            for offset, buffer in zip(offsets, program.buffers, strict=True)
        ]
        for program, offsets, arena in zip(partitioned.programs, memory.offsets, arenas, strict=True)
    ]


class _Preparation:
    def __init__(
        self, partitioned: PartitionedGraph, buffers: Buffers, worker: int, guard_scratch: bool
    ) -> None:
        self._partitioned = partitioned
        self._guard_scratch = guard_scratch
        self._band_bytes = BAND_BYTES if guard_scratch else 0
        self._placed = BufferViews(partitioned, buffers)
        self._worker = worker
        self._traffic = FetchedBytes()

    def run(self, scratch: Mapping[LaneOf, Scratch]) -> PreparedSteps:
        instructions = self._partitioned.programs[self._worker].instructions
        lanes = list(map(lane_of, instructions))
        steps: list[Step | None] = []
        needs = [0] * len(Lane)
        kept: list[list[Array]] = [[] for _ in Lane]
        for index, lane in enumerate(lanes):
            own = Workspace(band_bytes=self._band_bytes)
            step = self._step(index, own)
            needs[lane] = max(needs[lane], own.used_bytes)
            steps.append(None if own.used_bytes else step)
            kept[lane] += [] if own.used_bytes else own.kept
        shared = tuple(
            Workspace(need, self._band_bytes, scratch.get((self._worker, lane)))
            for lane, need in zip(Lane, needs, strict=True)
        )
        for workspace, values in zip(shared, kept, strict=True):
            workspace.keep(values)
        done: list[Step] = []
        for index, known in enumerate(steps):
            workspace = shared[lanes[index]]
            workspace.restart()
            done.append(self._on_scratch(index, workspace) if known is None else known)
        return PreparedSteps(tuple(done), self._traffic, shared)

    def _on_scratch(self, index: int, workspace: Workspace) -> Step:
        step = self._step(index, workspace)
        return watched_scratch(step, workspace) if self._guard_scratch else step

    def _step(self, index: int, workspace: Workspace) -> Step:
        with errors_named(self._partitioned, self._worker, index):
            return self._bound(self._partitioned.programs[self._worker].instructions[index], workspace)

    def _bound(self, instruction: Instruction, workspace: Workspace) -> Step:
        match instruction:
            case MultiFetch():
                transfers = self._transfers(instruction.target, instruction.pieces)
                return multi_fetch(transfers, self._traffic)
            case Reduce():
                return reduction(self._placed, self._worker, instruction, self._traffic, workspace)
            case Compute():
                bound = self._partitioned.graph.operations[instruction.operation].bound
                return bound.prepare(self._placed.call(self._worker, instruction, workspace))
            case _:
                assert_never(instruction)

    def _transfers(self, target: int, pieces: tuple[Piece, ...]) -> list[Transfer]:
        return [
            Transfer(
                self._placed.part(piece.worker, piece.buffer, piece.region),
                self._placed.part(self._worker, target, piece.region),
                piece.worker != self._worker,
            )
            for piece in pieces
        ]
