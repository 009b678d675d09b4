"""Graphs in 16 bits planned, placed in memory, and refused where they cannot run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import ExecutionError, GraphError, PlanError
from tofu.partitioner import lower, partition
from tofu.programs.check_memory import check_memory
from tofu.programs.memory import plan_memory
from tofu.programs.schedule import schedule
from tofu.runtime.executor import Executor

from .test_zoo_memory import FAMILIES, SMALL


def graph(name: str, dtype: str, **settings: Any) -> Graph:
    return tofu.models.get(name, **{**FAMILIES.get(name, {}), **settings}).training_graph(dtype=dtype)


@pytest.mark.parametrize("workers", [1, 6])
@pytest.mark.parametrize("name", SMALL)
def test_plans_are_of_their_types(name: str, workers: int) -> None:
    """The bytes that a plan states are recounted, those of its instructions counted, and nothing races."""
    narrow = graph(name, "bfloat16")
    plan = partition(narrow, workers)
    plan.verify(narrow)
    program = lower(narrow, plan)
    assert program.planned_bytes == plan.cost_bytes
    memory = plan_memory(program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)
    with pytest.raises(PlanError, match=r"the plan names tensor 'bfloat16\("):
        plan.verify(graph(name, "float32"))


def test_activations_take_half_the_memory_and_half_the_traffic() -> None:
    """Beside what lasts; copies of the weights, and what pooling and the loss keep wide, take the rest."""
    taken: dict[str, tuple[int, int]] = {}
    for dtype in ("float32", "float16"):
        each = graph("wresnet-16-4", dtype, batch=32)
        lasting = sum(
            4 * int(np.prod(t.shape)) for t in each.tensors if t.role.persistent and t.alias is None
        )
        (arena,) = plan_memory(lower(each, partition(each, 1))).arena_bytes
        taken[dtype] = arena - lasting, partition(each, 4).cost_bytes
    (wide, traffic), (narrow, less) = taken["float32"], taken["float16"]
    assert 0.5 * wide < narrow < 0.6 * wide
    assert 0.49 * traffic < less < 0.51 * traffic


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_processor_refuses_what_it_would_compute_in_another_type(dtype: str) -> None:
    narrow = graph("mlp", dtype)
    stored = (
        f"stores 'flatten_output' in {dtype}, but the processor's engine stores float32 only: run it on GPUs"
    )
    with pytest.raises(ExecutionError, match=re.escape(stored)):
        Executor(lower(narrow, partition(narrow, 2)))
    scores = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=2)
    network = tofu.sym.SoftmaxOutput(scores, name="softmax")
    data = tofu.ArrayIterator(np.ones((4, 3)), np.ones(4), 2)
    with (
        tofu.Module(network, tofu.cpu(0), dtype=dtype) as module,
        pytest.raises(ExecutionError, match="run it on GPUs"),
    ):
        module.fit(data)


def test_settings_are_refused_when_a_module_is_made() -> None:
    network = tofu.sym.SoftmaxOutput(tofu.sym.Variable("data"))
    with pytest.raises(GraphError, match="computed in 'half'"):
        tofu.Module(network, dtype="half")
    with pytest.raises(GraphError, match="loss scale is 0"):
        tofu.Module(network, loss_scale=0)


def test_a_loss_scale_of_a_power_of_two_changes_no_bit_of_float32() -> None:
    data = np.random.default_rng(1).standard_normal((16, 12)).astype(np.float32)
    batches = tofu.ArrayIterator(data, data[:, :4].argmax(axis=1), 8)
    hidden = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=4, name="fc")
    learned = []
    for scale in (None, 1024):
        with tofu.Module(
            tofu.sym.SoftmaxOutput(hidden, name="softmax"), [tofu.cpu(0)] * 2, loss_scale=scale
        ) as module:
            module.fit(batches, num_epoch=2, learning_rate=0.3)
            learned.append(module.parameters()["fc_weight"])
    np.testing.assert_array_equal(*learned)
