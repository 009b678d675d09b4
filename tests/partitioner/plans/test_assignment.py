"""The tasks, holdings and moves of a plan are those that are counted and lowered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.plans.assignment import Move
from tofu.plans import Holding, Task
from tofu.programs.program import Compute

from ..lowering.assignments import network, random_plan


def _crossing(move: Move) -> int:
    """Count the elements that a move fetches from other workers."""
    return sum(
        int(np.prod([upper - lower for lower, upper in piece.region]))
        for pieces in move.terms
        for piece in pieces
        if piece.worker != move.target.worker
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["mlp", "lenet", "lstm"])
def test_moves_add_up_to_the_bytes_counted(name: str, seed: int) -> None:
    graph = network(name)
    plan = random_plan(graph, 2 + seed % 4, seed).of(graph)
    moved: Counter[str] = Counter()
    for tensor in graph.tensors:
        for version in plan.versions[tensor.name]:
            moved[tensor.name] += tensor.itemsize * sum(_crossing(m) for hop in version.hops for m in hop)
    expected: Counter[str] = Counter()
    for entry in plan.contributions(graph):
        expected[entry.tensor] += entry.bytes if entry.kind != "fetch" else 0
    assert +moved == +expected


@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_tasks_are_what_is_computed(name: str) -> None:
    graph = network(name)
    plan = random_plan(graph, 3, 1).of(graph)
    program = tofu.lower(graph, plan)
    for operation in graph.operations:
        computed = [
            (one.worker, each.box)
            for one in program.programs
            for each in one.instructions
            if isinstance(each, Compute) and each.operation == operation.index
        ]
        tasks = plan.tasks[operation.name]
        assert sorted(computed) == sorted((task.worker, task.box) for task in tasks)


def test_values_print_themselves() -> None:
    graph = tofu.models.get("mlp", batch=4).training_graph()
    plan = tofu.partition(graph, 2)
    assert str(plan.tasks["relu1"][1]) == "worker 1 [0:4, 64:128]"
    assert str(Holding(0, ((0, 2),), 1)) == "worker 0 [0:2] term 1"
    home = plan.versions["relu1_output"][0]
    assert (home.number, home.source, home.hops) == (0, None, ())
    assert home.readers[0] == "fc2.product"
    assert str(home).splitlines()[1] == "  worker 0 [0:4, 0:64]"
    move = Move(Holding(0, ((0, 4),)), ((Holding(0, ((0, 4),), 0),), (Holding(1, ((0, 4),), 1),)))
    assert str(move) == "worker 0 [0:4] from (worker 0 [0:4] term 0) + (worker 1 [0:4] term 1)"
    assert Task(0, ((0, 4),)) != Task(0, ((0, 4),), 0)


def test_names_that_do_not_exist_and_plans_without_a_graph(tmp_path: Any) -> None:
    graph = tofu.models.get("mlp", batch=4).training_graph()
    plan = tofu.partition(graph, 2)
    with pytest.raises(PlanError, match=r"there is no operation 'relu'; did you mean"):
        plan.tasks["relu"]
    with pytest.raises(PlanError, match="there is no tensor 'fc1'"):
        plan.versions["fc1"]
    plan.save(tmp_path / "plan.json")
    loaded = tofu.Plan.load(tmp_path / "plan.json")
    with pytest.raises(PlanError, match=r"use plan\.of\(graph\)"):
        loaded.tasks  # noqa: B018
    assert loaded.of(graph).tasks["relu1"] == plan.tasks["relu1"]
    with pytest.raises(PlanError, match="the plan does not contain"):
        loaded.of(tofu.models.get("lenet", batch=4).training_graph())
