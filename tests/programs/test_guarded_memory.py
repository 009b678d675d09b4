"""With bands no two buffers share memory or touch, and the program's waits still fit."""

from __future__ import annotations

from itertools import pairwise

from tofu.models import get
from tofu.partitioner import lower, partition
from tofu.programs.guarded_memory import BAND_BYTES, guarded_memory
from tofu.programs.memory import plan_memory
from tofu.programs.offsets import ALIGNMENT_BYTES


def test_buffers_lie_apart() -> None:
    graph = get("mlp", batch=12).training_graph("adam")
    programs = lower(graph, partition(graph, 3))
    plain = plan_memory(programs)
    guarded = guarded_memory(programs, plain)
    assert guarded.live_bytes == plain.live_bytes
    for program, offsets, arena_bytes in zip(
        programs.programs, guarded.offsets, guarded.arena_bytes, strict=True
    ):
        spans = sorted((start, start + b.nbytes) for start, b in zip(offsets, program.buffers, strict=True))
        for (_, end), (start, _) in pairwise([(0, 0), *spans, (arena_bytes, arena_bytes)]):
            assert start - end >= BAND_BYTES
        assert not any(start % ALIGNMENT_BYTES for start in offsets)
