"""The method `place`: never behind ParDNN or one device, on any groups, within the memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tofu
from tofu.errors import PlanError
from tofu.machines.quantities import quantity
from tofu.partitioner.methods.placement.graph import NodeSchedule
from tofu.partitioner.methods.placement.grouped_plan import Inside, grouped_plan, whole_operations
from tofu.partitioner.methods.placement.groups import parse_groups
from tofu.partitioner.methods.placement.placing import Placing
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.space import Space
from tofu.runtime.executor import Executor

from ....runtime.test_partitioned_training import single, start_values, training

MACHINE = tofu.machines.load("dgx-1-v100")


@pytest.mark.parametrize("model", ["lenet", "lstm"])
def test_it_is_not_slower_than_one_device(model: str) -> None:
    graph = tofu.models.get(model, batch=16).training_graph()
    plan = tofu.partition(graph, 4, "place", machine=MACHINE)
    tofu.verify(graph, plan)
    everything = [0] * len(graph.operations)
    fed = Space(feed="batch")
    alone = tofu.lower(graph, grouped_plan(graph, whole_operations(graph), 4, everything, None, fed))
    assert plan.step_seconds <= tofu.simulate(alone, MACHINE).seconds
    assert tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds == plan.step_seconds


def test_groups_share_operations() -> None:
    graph = tofu.models.get("lenet", batch=16).training_graph()
    plan = tofu.partition(graph, 4, "place", machine=MACHINE, groups="2x2")
    tofu.verify(graph, plan)
    groups = {name: {task.worker // 2 for task in tasks} for name, tasks in plan.tasks.items()}
    assert all(len(found) == 1 for found in groups.values())
    assert any(len(tasks) == 2 for tasks in plan.tasks.values())


def test_pipelines_take_less_time_than_one_micro_batch() -> None:
    model = tofu.models.get("wresnet-10-2", batch=64)
    seconds = {}
    for count in (1, 4):
        graph = model.training_graph(accumulate=count, unroll=True)
        plan = tofu.partition(graph, 4, "place", machine=MACHINE, groups="4x1", memory="unlimited")
        seconds[count] = plan.step_seconds
    assert seconds[4] < seconds[1]


def test_groups_train_as_one_worker_does() -> None:
    graph, expected = training("convolutional"), single("convolutional", 1)
    plan = tofu.partition(graph, 4, "place", machine=MACHINE, groups="2x2")
    with Executor(tofu.lower(graph, plan)) as executor:
        for name, value in start_values(graph):
            executor.write(name, value if "label" not in name else abs(value))
        executor.run()
        assert executor.fetched_bytes == plan.cost_bytes
        for name, value in expected.items():
            np.testing.assert_array_equal(executor.read(name), value, err_msg=name)


@pytest.mark.parametrize("memory", ["1MB", "2MB"])
def test_memory_holds(memory: str) -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plan = tofu.partition(graph, 4, "place", machine=MACHINE, memory=memory)
    assert tofu.partitioner.peak_bytes(graph, plan) <= quantity(memory, "memory")


def test_what_cannot_fit_is_refused() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    with pytest.raises(PlanError, match="bytes"):
        tofu.partition(graph, 4, "place", machine=MACHINE, memory="100kB")


def test_plans_that_all_workers_share_are_not_made_for_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made, compose = [], Placing._composed

    def composed(placing: Placing, schedule: NodeSchedule, shared: Inside | None = None) -> Plan:
        plan = compose(placing, schedule, shared)
        if shared is not None and len(shared.operations) == len(plan.strategies):
            made.append((str(plan.strategies), str(plan.layouts), plan.written_order))
        return plan

    monkeypatch.setattr(Placing, "_composed", composed)
    graph = tofu.models.get("mlp").training_graph()
    with pytest.raises(PlanError, match="allow more"):
        tofu.partition(graph, 2, "place", machine=MACHINE, groups="2x1", memory="200kB")
    assert max(Counter(made).values()) <= 2  # the plan within the limit may be the one without a limit


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4", "write their number and the workers of each"),
        ("3x2", "3 groups of 2 are 6 workers"),
        ("0x4", "are 0"),
    ],
)
def test_bad_groups_are_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse_groups(text, 8)


def test_groups_are_for_methods_that_place() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    with pytest.raises(PlanError, match="'recursive' places nothing on groups"):
        tofu.partition(graph, 4, groups="2x2")
