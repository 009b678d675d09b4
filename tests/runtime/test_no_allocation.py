"""An iteration touches its arena and workspace alone: it makes no array, whatever the sizes are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tofu import models
from tofu.dataflow.graph import Graph, Role
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

WORKERS = 4
BUFFER_ELEMENTS = 8192
"""NumPy's own: a universal function that casts, or reduces along odd strides, goes through such pieces."""
ALLOWED_BYTES = 4 * BUFFER_ELEMENTS * 8
"""A few operands of one function at a time, of the widest type, and the interpreter's small change."""

CASES = {
    "mlp": {"batch": 2048},
    "wresnet-10-2": {"batch": 64},
    "rnn-2-256": {"batch": 512, "steps": 2, "features": 64},
}


def run(graph: Graph, iterations: int) -> tuple[int, int]:
    """The most bytes taken at any moment of an iteration, once it has run before; and an arena's."""
    generator = np.random.default_rng(0)
    with Executor(lower(graph, partition(graph, WORKERS)), threads=1) as executor:
        for tensor in graph.tensors:
            if tensor.alias is None and tensor.role in (Role.DATA, Role.PARAMETER, Role.AUXILIARY):
                value = generator.standard_normal(tensor.shape).astype(np.float32)
                executor.write(tensor.name, np.abs(value) if tensor.name.endswith("_var") else value / 16)
        executor.run()
        tracemalloc.start()
        try:
            most = 0
            for _ in range(iterations):
                before, _ = tracemalloc.get_traced_memory()
                tracemalloc.reset_peak()
                executor.run()
                most = max(most, tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
        return most, max(executor.memory.arena_bytes)


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_iteration_makes_no_array(name: str) -> None:
    taken, arena_bytes = run(models.get(name, **CASES[name]).training_graph(), iterations=2)
    assert taken < ALLOWED_BYTES
    assert arena_bytes > 8 * ALLOWED_BYTES, "the model is too small to show anything"


def test_what_is_allocated_is_seen() -> None:
    """NumPy reports its arrays: an iteration that copies one tensor does not pass."""
    graph = models.get("mlp", batch=2048).training_graph()
    programs = lower(graph, partition(graph, WORKERS))
    with Executor(programs, threads=1) as executor:
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            executor.read("data")
            assert tracemalloc.get_traced_memory()[1] - before > ALLOWED_BYTES
        finally:
            tracemalloc.stop()
