"""The paper's statement on memory: its largest models fit workers of 12 GB (Tofu, section 7)."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner import lower, partition
from tofu.programs.memory import plan_memory

WORKERS = 8
WORKER_BYTES = 12 * 10**9


@pytest.mark.parametrize(
    ("name", "batch"),
    [("wresnet-152-10", 8), ("wresnet-152-4", 32), ("wresnet-50-4", 128), ("rnn-10-8k", 128)],
)
def test_the_largest_models_fit(name: str, batch: int) -> None:
    graph = tofu.models.get(name, batch=batch).training_graph()
    memory = plan_memory(lower(graph, partition(graph, workers=WORKERS, replicate=False, feed="anywhere")))
    single = plan_memory(lower(graph, partition(graph, workers=1))).arena_bytes[0]
    assert single > WORKER_BYTES, "it does not fit one of them"
    for arena, live, kinds in zip(
        memory.arena_bytes, memory.lower_bound_bytes, memory.peak_kinds, strict=True
    ):
        assert arena < WORKER_BYTES
        assert arena <= 1.03 * live
        assert WORKERS * arena <= 1.05 * single
        assert sum(kinds.values()) == live
