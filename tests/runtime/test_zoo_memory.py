"""Real models in memory: nothing races, nothing is read unwritten, nothing is written out of bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tofu import models
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.partitioner import lower, partition
from tofu.programs.check_memory import check_memory
from tofu.programs.memory import MemoryPlan, plan_memory
from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime import numpy_engine
from tofu.runtime.executor import Executor

FAMILIES: dict[str, dict[str, Any]] = {
    "mlp": {"batch": 8},
    "lenet": {"batch": 8},
    "alexnet": {"batch": 8},
    "vgg-11": {"batch": 8},
    "resnet-18": {"batch": 8},
    "wresnet-10-2": {"batch": 8},
    "inception-v3": {"batch": 8},
    "rnn-2-32": {"batch": 8, "steps": 3, "features": 16, "classes": 8},
    "lstm": {"batch": 8, "hidden": 16, "steps": 3, "embedding": 8, "vocabulary": 16},
    "gru": {"batch": 8, "hidden": 16, "steps": 3, "embedding": 8, "vocabulary": 16},
    "transformer-encoder-1-16": {"batch": 4, "steps": 8, "vocabulary": 16, "heads": 2},
    "transformer-decoder-1-16": {"batch": 4, "steps": 8, "memory": 8, "vocabulary": 16, "heads": 2},
    "transformer-1-16": {"batch": 4, "steps": 8, "vocabulary": 16, "heads": 2},
    "gpt-1-16": {"batch": 4, "steps": 8, "vocabulary": 16, "heads": 2},
}
SMALL = ("mlp", "lenet", "wresnet-10-2", "rnn-2-32", "lstm", "gpt-1-16")
GUARD_BYTES = 256


@cache
def graph_of(name: str) -> Graph:
    return models.get(name, **FAMILIES[name]).training_graph()


SLOW = pytest.mark.slow


@pytest.mark.parametrize("workers", [1, 3, 8, *(pytest.param(n, marks=SLOW) for n in (2, 4, 5, 6, 7))])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_nothing_races(name: str, workers: int) -> None:
    """By the checker that knows nothing of how offsets and waits were found."""
    program = lower(graph_of(name), partition(graph_of(name), workers))
    memory = plan_memory(program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)


@pytest.mark.parametrize("name", SMALL)
def test_the_checker_sees_what_is_missing(name: str) -> None:
    program = lower(graph_of(name), partition(graph_of(name), 4))
    memory = plan_memory(program)
    waits = [[()] * len(each.instructions) for each in program.programs]
    with pytest.raises(PlanError, match="a wait is missing"):
        check_memory(program, memory.offsets, memory.arena_bytes, waits)


@pytest.mark.parametrize("workers", [1, 3, 8])
@pytest.mark.parametrize("name", SMALL)
def test_poisoned_memory_changes_nothing(name: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arenas that start as NaN between guard bands: the same outputs, bands untouched."""
    program = lower(graph_of(name), partition(graph_of(name), workers))
    expected = outputs(program)
    arenas: list[Any] = []

    def poisoned(partitioned: PartitionedGraph, memory: MemoryPlan) -> list[Any]:
        for nbytes in memory.arena_bytes:
            raw = np.full(nbytes + 2 * GUARD_BYTES + 64, 0xFF, np.uint8)  # as float32 and float64: NaN
            start = -raw.ctypes.data % 64
            arenas.append(raw[start : start + nbytes + 2 * GUARD_BYTES])
        return [arena[GUARD_BYTES:-GUARD_BYTES] for arena in arenas]

    monkeypatch.setattr(numpy_engine, "allocate", poisoned)
    found = outputs(program)
    assert expected
    for name_, value in expected.items():
        assert np.isfinite(value).all()
        np.testing.assert_array_equal(found[name_], value, err_msg=name_)
    assert len(arenas) == workers
    for arena in arenas:
        assert (arena[:GUARD_BYTES] == 0xFF).all()
        assert (arena[-GUARD_BYTES:] == 0xFF).all()


def outputs(program: PartitionedGraph) -> dict[str, Any]:
    """Outputs and everything learned after two iterations."""
    generator = np.random.default_rng(0)
    tensors = [tensor for tensor in program.graph.tensors if tensor.alias is None]
    with Executor(program) as executor:
        for tensor in tensors:
            if tensor.role is Role.SCALAR:
                executor.write(tensor.name, np.full(tensor.shape, 0.01, np.float32))
            elif tensor.role is Role.STATE:
                executor.write(tensor.name, np.zeros(tensor.shape, np.float32))
            elif tensor.role.persistent:
                value = generator.standard_normal(tensor.shape).astype(np.float32) / 8
                executor.write(tensor.name, np.abs(value))
        for _ in range(2):
            executor.run()
        kept = [t.name for t in tensors if t.role is Role.PARAMETER]
        kept += [program.graph.tensors[index].name for index in program.graph.outputs]
        return {name: executor.read(name) for name in kept}
