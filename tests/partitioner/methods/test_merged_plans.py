"""Plans of merged graphs: chosen if they cost no more and fit, found again from files, and trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.dataflow.merging.merged import merged
from tofu.errors import PlanError
from tofu.partitioner import Fitting, Plan
from tofu.partitioner.methods.fitting import cost_of
from tofu.partitioner.methods.limit import Limit
from tofu.partitioner.methods.merged_plans import better_merged

from ...dataflow.merging.networks import after


@pytest.fixture(scope="module")
def graph() -> Graph:
    return tofu.models.get("lstm", batch=32, steps=4, hidden=32).training_graph()


@pytest.fixture(scope="module")
def plan(graph: Graph) -> Plan:
    return tofu.partition(graph, 4, merge=True)


def test_merged_plans_are_chosen_if_they_move_no_more(graph: Graph, plan: Plan) -> None:
    assert plan.merged
    assert plan.cost_bytes <= tofu.partition(graph, 4).cost_bytes
    assert plan.graph is not None
    plan.verify(plan.graph)
    assert plan.graph.fingerprint == merged(graph).fingerprint == plan.fingerprint


def test_files_of_merged_plans_say_so(graph: Graph, plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    found = Plan.load(tmp_path / "plan.json")
    assert found == replace(plan, search_seconds=found.search_seconds)
    with pytest.raises(PlanError, match=r"with merged operations; use tofu.sync.rewrite"):
        found.verify(graph)
    found.verify(tofu.sync.rewrite(graph, 4, found))
    text = (tmp_path / "plan.json").read_text()
    (tmp_path / "plan.json").write_text(text.replace('"merged": true', '"merged": 1'))
    with pytest.raises(PlanError, match="merged is 1"):
        Plan.load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("costs", "arenas", "limit", "chosen"),
    [
        ((10, 10), (100, 100), None, True),
        ((10, 11), (100, 100), None, False),
        ((10, 9), (100, 115), None, True),
        ((10, 9), (100, 116), None, False),
        ((10, 9), (100, 116), "unlimited", True),
        ((10, 9), (100, 116), 116, True),
        ((10, 9), (100, 116), 115, False),
        ((10, 11), (100, 90), 95, True),
        ((10, 9), (100, 96), 95, False),
    ],
)
def test_the_merged_plan_is_taken_if_it_costs_no_more_and_fits(
    graph: Graph, plan: Plan, costs: tuple[int, int], arenas: tuple[int, int], limit: Limit, chosen: bool
) -> None:
    plain = replace(plan, merged=False)

    def search(each: Graph) -> Fitting:
        second = each is not graph
        return Fitting(plain, costs[second], arenas[second], 0)

    assert better_merged(graph, limit, search).plan.merged is chosen


@pytest.mark.parametrize(("seconds", "chosen"), [((2.0, 1.5), True), ((1.5, 2.0), False)])
def test_simulated_plans_cost_the_time_of_an_iteration(
    graph: Graph, plan: Plan, seconds: tuple[float, float], chosen: bool
) -> None:
    """The slower one moves fewer bytes."""
    plain = replace(plan, merged=False)

    def search(each: Graph) -> Fitting:
        taken = seconds[each is not graph]
        found = replace(plain, step_seconds=taken, cost_bytes=round(10 / taken))
        return Fitting(found, cost_of(found), 100, 0)

    assert better_merged(graph, "unlimited", search).plan.merged is chosen


@pytest.mark.parametrize("method", ["wu-2016", "one-weird-trick", "data-parallel", "flexflow", "anneal"])
def test_methods_make_plans_of_merged_graphs(graph: Graph, method: str) -> None:
    changed = merged(graph)
    workers, drawn = 4, {}
    if method in ("flexflow", "anneal"):
        workers, drawn = 2, {"machine": "p100-node", "proposals": 5}
    tofu.partition(changed, workers, method, **drawn).verify(changed)


def test_modules_train_merged_graphs() -> None:
    model = tofu.models.get("lstm", batch=32, steps=3, hidden=32)
    data = np.random.default_rng(0).integers(0, 20, (64, 3))
    learned = []
    for merge in (False, True):
        with tofu.Module(model.symbol, [tofu.cpu(k) for k in range(2)], merge=merge) as module:
            module.fit(tofu.ArrayIterator(data, data, batch_size=32), num_epoch=2, learning_rate=0.1)
            assert [plan.merged for plan in module.plans.values()] == [merge]
            learned.append(module.parameters())
    for name, value in learned[0].items():
        np.testing.assert_allclose(learned[1][name], value, rtol=1e-4, atol=1e-6)
    again = tofu.Module(model.symbol, [tofu.cpu(k) for k in range(2)], plan=next(iter(module.plans.values())))
    with again:
        again.fit(tofu.ArrayIterator(data, data, batch_size=32), num_epoch=2, learning_rate=0.1)
        for name, value in learned[1].items():
            np.testing.assert_array_equal(again.parameters()[name], value)


def test_workers_agree_with_one() -> None:
    model = tofu.models.get("gru", batch=4, steps=3, hidden=16)
    found = merged(model.training_graph(dtype="float32"))
    expected = after(found)
    for name, value in after(found, workers=4).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)
