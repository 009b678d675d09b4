"""Compute the memory that a partitioned graph takes, without running it."""

from __future__ import annotations

from dataclasses import dataclass

from ..programs.memory import plan_memory
from ..programs.program import PartitionedGraph
from .preparation import allocate, prepare


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of each worker."""

    arena_bytes: tuple[int, ...]
    """The arena of each worker."""

    workspace_bytes: tuple[int, ...]
    """The workspace of each worker's kernels, besides the arena."""

    @property
    def peak_bytes(self) -> int:
        """Return the most that any worker holds."""
        return max(map(sum, zip(self.arena_bytes, self.workspace_bytes, strict=True)), default=0)


def footprint(partitioned: PartitionedGraph) -> Footprint:
    """Prepare every kernel of every worker on memory that is never touched, and count."""
    memory = plan_memory(partitioned)
    buffers = allocate(partitioned, memory)
    return Footprint(
        memory.arena_bytes,
        tuple(prepare(partitioned, buffers, worker).workspace_bytes for worker in range(partitioned.workers)),
    )
