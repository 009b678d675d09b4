"""Transfers that wait for each other: the same values, bytes and instructions, in fewer messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import ProgramError
from tofu.programs import PartitionedGraph, plan_memory, schedule
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.gathering import gather
from tofu.programs.messages import messages
from tofu.programs.program import Compute
from tofu.runtime.executor import Executor

WORKERS = 4


@pytest.fixture(scope="module")
def graph() -> Graph:
    return tofu.models.get("mlp", batch=8).training_graph()


@pytest.fixture(scope="module")
def lowered(graph: Graph) -> PartitionedGraph:
    return tofu.lower(graph, tofu.partition(graph, WORKERS, "all-reduce"))


def gradients(graph: Graph, *names: str) -> list[int]:
    return [t.index for t in graph.tensors if t.name in {f"grad({name})" for name in names}]


WEIGHTS = ("fc1_weight", "fc2_weight", "fc3_weight")
GROUPS = [
    [("fc3_weight", "fc2_weight", "fc1_weight", "fc1_bias", "fc2_bias", "fc3_bias")],
    [WEIGHTS],
    [("fc3_weight", "fc2_bias"), ("fc2_weight", "fc1_weight")],
    [("fc3_weight", "fc1_bias"), ("fc2_weight", "fc1_weight")],
]


@pytest.mark.parametrize("groups", GROUPS)
def test_gathered_programs_are_right(
    graph: Graph, lowered: PartitionedGraph, groups: list[tuple[str, ...]]
) -> None:
    found = gather(lowered, [gradients(graph, *names) for names in groups])
    check_program(graph, WORKERS, lowered.planned_bytes, found)
    memory = plan_memory(found)
    check_memory(found, memory.offsets, memory.arena_bytes, schedule(found, memory).waits)
    for before, after in zip(lowered.programs, found.programs, strict=True):
        assert before.buffers == after.buffers
        same = [{repr(replace(each, tick=0)) for each in p.instructions} for p in (before, after)]
        assert same[0] == same[1]


def test_gathered_programs_train_the_same_bits(graph: Graph, lowered: PartitionedGraph) -> None:
    draw = np.random.default_rng(3)
    start = {
        t.name: draw.standard_normal(t.shape).astype(t.dtype)
        for t in graph.tensors
        if t.alias is None and (t.role.persistent or t.role is Role.DATA)
    }
    start["softmax_label"] = np.arange(8) % 10
    kept = [t.name for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None]
    results = []
    for program in (lowered, gather(lowered, [gradients(graph, *WEIGHTS)])):
        with Executor(program, threads=2) as executor:
            for name, value in start.items():
                executor.write(name, value)
            for _ in range(3):
                executor.run()
            assert executor.fetched_bytes == program.planned_bytes
            results.append({name: executor.read(name) for name in kept})
    for name in kept:
        np.testing.assert_array_equal(results[0][name], results[1][name])


def test_a_group_has_one_message_for_each_pair_and_hop(graph: Graph, lowered: PartitionedGraph) -> None:
    pairs, hops, variables = WORKERS * (WORKERS - 1), 2, 6
    assert messages(lowered, 0).count == pairs * hops * variables
    merged = gather(lowered, [gradients(graph, *WEIGHTS)])
    assert messages(merged, 0).count == pairs * hops * (variables - 2)
    everything = gather(lowered, [gradients(graph, *(name for names in GROUPS[0] for name in names))])
    assert messages(everything, 0).count == pairs * hops
    collects = {
        each.tick
        for program in everything.programs
        for each in program.instructions
        if not isinstance(each, Compute)
    }
    assert len(collects) == hops


def test_one_tensor_alone_waits_for_nothing(graph: Graph, lowered: PartitionedGraph) -> None:
    assert gather(lowered, [[each] for each in gradients(graph, *WEIGHTS)]) is lowered
    assert gather(lowered, []) is lowered


def test_groups_that_cannot_be_are_refused(graph: Graph, lowered: PartitionedGraph) -> None:
    weights = gradients(graph, *WEIGHTS)
    with pytest.raises(ProgramError, match="is in groups 0 and 1; put it into one of them"):
        gather(lowered, [weights, weights[:1]])
    data = [t.index for t in graph.tensors if t.name == "grad(relu2_output)"]
    plan = tofu.partition(graph, WORKERS, "all-row")
    with pytest.raises(ProgramError, match="put them into groups of their own"):
        gather(tofu.lower(graph, plan), [data + gradients(graph, "fc1_bias")])
