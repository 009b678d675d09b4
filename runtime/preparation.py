"""Prepare a worker: allocate its memory, and bind its instructions to that memory as functions.

The instructions of a lane share one workspace, because they run one after the other. Its size is measured
first: every instruction is prepared on separate scratch, and those that took any are prepared again in the
shared workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from ..dataflow.element_types import storage_type
from ..errors import ExecutionError
from ..operators.kernels.kernel import Array
from ..operators.kernels.workspace import Workspace
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
from ..support.gc_pause import gc_paused
from .buffer_views import BufferViews
from .collectives import FetchedBytes, Step, Transfer, multi_fetch
from .reductions import reduction
from .scratch_bands import watched_scratch

Buffers = Sequence[Sequence[Array]]


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
    partitioned: PartitionedGraph, buffers: Buffers, worker: int, guard_scratch: bool = False
) -> PreparedSteps:
    """Bind a worker's instructions to `buffers[worker][buffer]`.

    If `guard_scratch`, a step raises ExecutionError if its kernel writes outside its scratch memory. Raises
    ExecutionError that names the worker and the operation if a kernel cannot be prepared.
    """
    with gc_paused():
        return _Preparation(partitioned, buffers, worker, guard_scratch).run()


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
    """Allocate one zeroed arena per worker, as bytes."""
    arenas: list[Array] = []
    for worker, arena_bytes in enumerate(memory.arena_bytes):
        try:
            block = np.zeros(arena_bytes + ALIGNMENT_BYTES, np.uint8)
        except MemoryError:
            raise ExecutionError(
                f"worker {worker}: no memory for its arena of {arena_bytes} bytes; use more workers "
                "or a smaller batch"
            ) from None
        start = -block.ctypes.data % ALIGNMENT_BYTES
        arenas.append(block[start : start + arena_bytes])
    return arenas


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

    def run(self) -> PreparedSteps:
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
        shared = tuple(Workspace(need, self._band_bytes) for need in needs)
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
