"""The workspace of kernels, found before anything runs, is what an engine takes."""

from __future__ import annotations

import pytest

import tofu
from tofu.programs.memory import plan_memory
from tofu.runtime.executor import Executor
from tofu.runtime.kernel_scratch import KernelScratch


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mlp", {"batch": 9}),
        ("lenet", {"batch": 8}),
        ("wresnet-10-2", {"batch": 8, "image": (1, 8, 8), "classes": 10}),
        ("lstm", {"batch": 4, "steps": 3}),
    ],
)
def test_it_is_that_of_an_engine(name: str, options: dict[str, object]) -> None:
    scratch = KernelScratch()
    graph = tofu.models.get(name, **options).training_graph()
    for workers in (1, 3, 4):
        programs = tofu.lower(graph, tofu.partition(graph, workers, memory="unlimited"))
        found = scratch.workspace_bytes(programs, plan_memory(programs))
        with Executor(programs) as executor:
            held = executor.held_bytes
            assert tuple(map(sum, zip(executor.memory.arena_bytes, found, strict=True))) == held
