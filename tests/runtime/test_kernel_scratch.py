"""The workspace of kernels, found before anything runs, is what an engine takes."""

from __future__ import annotations

import pytest

import tofu
from tofu.programs.memory import plan_memory
from tofu.programs.program import Compute
from tofu.runtime.executor import Executor
from tofu.runtime.kernel_scratch import KernelScratch, _Calls


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


@pytest.mark.parametrize("name", ["mlp", "lenet", "wresnet-10-2", "lstm"])
@pytest.mark.parametrize("method", ["recursive", "all-row", "data-parallel"])
def test_no_kernel_takes_less_than_on_arrays_of_its_own(name: str, method: str) -> None:
    small = {"wresnet-10-2": {"image": (1, 8, 8), "classes": 10}, "lstm": {"steps": 3}}
    graph = tofu.models.get(name, batch=4, **small.get(name, {})).training_graph()
    programs = tofu.lower(graph, tofu.partition(graph, 4, method=method, memory="unlimited"))
    scratch, memory, shared = KernelScratch(), plan_memory(programs), 0
    for worker, program in enumerate(programs.programs):
        calls = _Calls(programs, memory.offsets[worker], worker)
        for instruction in program.instructions:
            if not isinstance(instruction, Compute):
                continue
            operation = graph.operations[instruction.operation]
            names = operation.bound.description.tensor_names
            inputs = {
                name: region
                for name, region in zip(names, instruction.input_regions, strict=True)
                if region is not None
            }
            outputs = tuple(program.buffers[buffer].region for buffer in instruction.outputs)
            places = [memory.offsets[worker][b] for b in instruction.inputs if b is not None]
            over = [
                number
                for number, buffer in enumerate(instruction.outputs)
                if graph.tensors[operation.outputs[number]].alias is not None
                and memory.offsets[worker][buffer] in places
            ]
            shared += len(over)
            alone = scratch.alone_bytes(graph, operation, instruction.box, inputs, outputs, over)
            assert alone <= calls.compute_need(instruction).scratch_bytes, operation.name
    assert shared
