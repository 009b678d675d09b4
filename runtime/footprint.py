"""Compute the memory that a partitioned graph takes, without running it."""

from __future__ import annotations

from dataclasses import dataclass

from ..programs.memory import plan_memory
from ..programs.program import PartitionedGraph
from .kernel_scratch import KernelScratch


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


def footprint(partitioned: PartitionedGraph, scratch: KernelScratch | None = None) -> Footprint:
    """Count the memory of every worker. `scratch` remembers what kernels of other programs need."""
    memory = plan_memory(partitioned)
    return Footprint(memory.arena_bytes, (scratch or KernelScratch()).workspace_bytes(partitioned, memory))
