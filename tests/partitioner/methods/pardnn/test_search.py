"""Plans of ParDNN's placement: whole operations, within the memory, simulated as they are lowered."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.errors import PlanError
from tofu.runtime.executor import Executor

from ....runtime.test_partitioned_training import single, start_values, training

MACHINE = tofu.machines.load("dgx-1-v100")


@pytest.mark.parametrize("model", ["lenet", "lstm"])
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_operations_are_whole_and_take_the_simulated_time(model: str, workers: int) -> None:
    graph = tofu.models.get(model, batch=16).training_graph()
    plan = tofu.partition(graph, workers, "pardnn", machine=MACHINE, memory="unlimited")
    tofu.verify(graph, plan)
    assert all(len(tasks) == 1 for tasks in plan.tasks.values())
    assert tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds == plan.step_seconds


def test_memory_holds_or_is_refused() -> None:
    """From the least limit that is kept on, every larger one is kept, with arenas below it."""
    graph = tofu.models.get("lenet", batch=64).training_graph()
    alone = tofu.partitioner.peak_bytes(graph, tofu.partition(graph, 1))
    kept: list[bool] = []
    refused: list[str] = []
    for share in (0.05, 0.3, 0.5, 0.8, 1.2):
        limit = int(alone * share)
        try:
            plan = tofu.partition(graph, 4, "pardnn", machine=MACHINE, memory=limit)
        except PlanError as error:
            refused.append(str(error))
            kept.append(False)
        else:
            kept.append(tofu.partitioner.peak_bytes(graph, plan) <= limit)
    assert kept[0] is False
    assert kept[-1] is True
    assert kept == sorted(kept)
    assert all("bytes" in text for text in refused)


def test_it_trains_as_one_worker_does() -> None:
    graph, expected = training("convolutional"), single("convolutional", 1)
    plan = tofu.partition(graph, 4, "pardnn", machine=MACHINE)
    with Executor(tofu.lower(graph, plan)) as executor:
        for name, value in start_values(graph):
            executor.write(name, value if "label" not in name else abs(value))
        executor.run()
        assert executor.fetched_bytes == plan.cost_bytes
        for name, value in expected.items():
            np.testing.assert_array_equal(executor.read(name), value, err_msg=name)


@pytest.mark.parametrize("name", ["pardnn-heuristic-1", "pardnn-heuristic-2"])
def test_the_papers_heuristics_fit_or_are_refused(name: str) -> None:
    """Without a limit they change nothing; within one they need another placement, which may not suffice."""
    graph = tofu.models.get("lstm", batch=64, steps=6, hidden=64).training_graph()
    free = tofu.partition(graph, 4, name, machine=MACHINE, memory="unlimited")
    assert free.method == name
    assert (
        free.step_seconds
        == tofu.partition(graph, 4, "pardnn", machine=MACHINE, memory="unlimited").step_seconds
    )
    needed = tofu.partitioner.peak_bytes(graph, free)
    limit = 2 * needed
    plan = tofu.partition(graph, 4, name, machine=MACHINE, memory=limit)
    tofu.verify(graph, plan)
    assert tofu.partitioner.peak_bytes(graph, plan) <= limit
    with pytest.raises(PlanError, match=rf"'{name}' leaves .* the method 'pardnn' makes plans fit"):
        tofu.partition(graph, 4, name, machine=MACHINE, memory=needed // 4)
