"""Give every buffer memory of its own, with bands before and after it that no instruction may touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from .memory import MemoryPlan
from .offsets import ALIGNMENT_BYTES
from .program import Buffer, PartitionedGraph

BAND_BYTES = 4 * ALIGNMENT_BYTES
"""The least distance between two buffers, and between a buffer and an end of the arena."""


def guarded_memory(partitioned: PartitionedGraph, memory: MemoryPlan) -> MemoryPlan:
    """Return a memory plan in which no two buffers share memory or touch. Arenas are larger, often far."""
    places = [_spread(program.buffers) for program in partitioned.programs]
    return replace(
        memory,
        offsets=tuple(tuple(offsets) for *offsets, _ in places),
        arena_bytes=tuple(arena_bytes for *_, arena_bytes in places),
    )


def _spread(buffers: Sequence[Buffer]) -> list[int]:
    """Return the first byte of each buffer, and the size of the arena."""
    steps = (BAND_BYTES + -(-buffer.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for buffer in buffers)
    return list(accumulate(steps, initial=BAND_BYTES))
