"""Graphs in 16 bits planned, placed in memory, and run on the processor."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.element_types import storage_type
from tofu.dataflow.graph import Graph, Role
from tofu.errors import ExecutionError, GraphError, PlanError
from tofu.partitioner import lower, partition
from tofu.partitioner.plans.compose import compose
from tofu.programs.check_memory import check_memory
from tofu.programs.memory import plan_memory
from tofu.programs.schedule import schedule
from tofu.runtime.executor import Executor
from tofu.runtime.footprint import footprint

from .test_partitioned_training import start_values
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


UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error of one rounding."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_the_processor_trains_in_16_bits(name: str, dtype: str, workers: int) -> None:
    """Rounding changes what is learned, but not by much: pooling windows and rectifiers choose otherwise."""
    changes = {}
    for kind in ("float32", dtype):
        each = graph(name, kind)
        program = lower(each, partition(each, workers))
        with Executor(program, detect_nan=True) as executor:
            start = dict(start_values(each))
            for tensor, value in start.items():
                executor.write(tensor, abs(value) if "label" in tensor else value / 8)
            for _ in range(2):
                executor.run()
                assert executor.fetched_bytes == program.planned_bytes
            learned = [t.name for t in each.tensors if t.role is Role.PARAMETER and t.alias is None]
            changes[kind] = {p: executor.read(p) - start[p].astype(np.float32) / 8 for p in learned}
            assert executor.workspace_bytes_per_worker == max(footprint(program).workspace_bytes)
    for parameter, exact in changes["float32"].items():
        assert exact.any()
        wrong = np.linalg.norm(changes[dtype][parameter] - exact)
        assert 0 < wrong < 64 * UNIT[dtype] * np.linalg.norm(exact), parameter


def test_terms_of_16_bits_are_added_in_float32() -> None:
    """2048 + 1 + 1 is 2050, but 2048 if each sum is rounded to float16."""
    x = tofu.sym.Variable("x")
    symbol = tofu.sym.sum(x, axis=0, name="sum")
    wide = tofu.inference_graph(symbol, {"x": (4, 3)})
    kinds = ("float16", "float32")
    tensors = tuple(replace(t, dtype=kinds[t.role is Role.DATA]) for t in wide.tensors)
    summed = replace(wide, tensors=tensors)
    plan = compose(summed, 4, {"*": ("i0", "i0")}, {"x": (0, 0), "*": (None, None)})
    with Executor(lower(summed, plan)) as executor:
        executor.write("x", np.array([[2048.0], [1.0], [1.0], [0.0]]).repeat(3, axis=1))
        executor.run()
        assert executor.fetched_bytes == 4 * 3 * 3 * 2
        assert executor.read("sum_output").tolist() == [2050.0] * 3


def test_bfloat16_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    storage_type.cache_clear()
    narrow = graph("mlp", "bfloat16")
    with pytest.raises(ExecutionError, match=re.escape("pip install 'tofu[bfloat16]', or use float16")):
        Executor(lower(narrow, partition(narrow, 2)))


def test_settings_are_refused_when_a_module_is_made() -> None:
    network = tofu.sym.SoftmaxOutput(tofu.sym.Variable("data"))
    with pytest.raises(GraphError, match="computed in 'half'"):
        tofu.Module(network, dtype="half")
    with pytest.raises(GraphError, match="loss_scale is 0"):
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
