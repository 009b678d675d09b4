"""Moves of whole plans: other orders, and transfers in several hops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest

import tofu
from tofu.models import recurrent
from tofu.partitioner.methods.anneal.orders import orders
from tofu.partitioner.methods.anneal.rewrites import Orders, Rewrites, Timed
from tofu.partitioner.methods.anneal.scheduled_orders import ROUNDS, scheduled_orders
from tofu.partitioner.methods.simulated import SimulatedSearch
from tofu.partitioner.methods.worker_memory import WorkerMemory
from tofu.partitioner.plans.recounted import recounted, with_stops
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.simulation import simulation
from tofu.partitioner.plans.space import Space

from ..flexflow.small_graphs import OPTIONS, graph_of


@cache
def layers() -> Any:
    """Return two layers of eight steps, whose computations take longer than messages."""
    net = recurrent.rnn(layers=2, hidden=1024, steps=8, classes=2)
    return tofu.training_graph(net, {"data": (256, 8, 1024), "softmax_label": (256,)})


def search_of(graph: Any, machine: str, workers: int, keep: bool = True) -> SimulatedSearch:
    found = tofu.machines.load(machine)
    space = Space(keep=keep, feed="batch")
    return SimulatedSearch(
        graph,
        workers,
        space,
        found,
        Sampling(0),
        None,
        lambda: (),
        None,
        lambda workers: pytest.fail("no plan is asked for"),
    )


def rewritten(graph: Any, machine: str, method: str, workers: int, keep: bool = True) -> tuple[Timed, Timed]:
    rewrites, shown = rewrites_of(search_of(graph, machine, workers, keep))
    plan = tofu.partition(graph, workers, method)
    before = Timed(rewrites.nanoseconds(plan), plan)
    after = rewrites.best(before)
    assert shown == sorted({*shown}, reverse=True)
    assert [before.nanoseconds, *shown][-1] == after.nanoseconds
    return before, replace(after, plan=recounted(graph, after.plan))


def rewrites_of(asked: SimulatedSearch) -> tuple[Rewrites, list[int]]:
    """Return the moves of a search, and the times that they show."""
    shown: list[int] = []
    return Rewrites(asked, shown.append), shown


@pytest.mark.parametrize("model", OPTIONS)
@pytest.mark.parametrize(
    ("others", "count", "different"), [(orders, 2, 2), (scheduled_orders, 3 * ROUNDS, 1)]
)
def test_orders_are_those_of_plans(model: str, others: Orders, count: int, different: int) -> None:
    graph = graph_of(model)
    plan = tofu.partition(graph, 4, "data-parallel")
    simulated = simulation(graph, plan, "p100-node")
    found = list(others(graph, simulated))
    assert len(found) == count
    assert len(set(found)) >= different
    for order in found:
        tofu.verify(graph, replace(plan, written_order=order))


def test_layers_on_different_devices_overlap_in_another_order() -> None:
    """The graph has all steps of a layer before those of the next one."""
    before, after = rewritten(layers(), "p100-node", "wu-2016", 2)
    assert after.plan.written_order is not None
    assert after.plan.strategies == before.plan.strategies
    assert after.nanoseconds < 0.8 * before.nanoseconds
    tofu.verify(layers(), after.plan)
    lowered = tofu.lower(layers(), after.plan)
    assert tofu.simulate(lowered, "p100-node").nanoseconds == after.nanoseconds


def test_list_schedules_order_layers_better() -> None:
    graph = tofu.models.get("lstm", batch=256, layers=2, steps=8, hidden=1024).training_graph()
    asked = search_of(graph, "k80-node", 4)
    rewrites, _ = rewrites_of(asked)
    plan = tofu.partition(graph, 4, "wu-2016")
    found = rewrites.best(Timed(rewrites.nanoseconds(plan), plan))
    listed = rewrites.scheduled(found)
    assert listed.nanoseconds < found.nanoseconds
    assert listed.plan.strategies == found.plan.strategies
    lowered = tofu.lower(graph, listed.plan)
    assert tofu.simulate(lowered, "k80-node").nanoseconds == listed.nanoseconds
    assert rewrites.scheduled(listed).nanoseconds <= listed.nanoseconds


def test_updates_come_where_their_gradients_arrive() -> None:
    """Workers begin transfers in the order of operations: updates that come last send the weights last."""
    graph = tofu.models.get("alexnet", batch=512).training_graph()
    rewrites, _ = rewrites_of(search_of(graph, "k80-node", 4))
    plan = tofu.partition(graph, 4, "all-reduce", memory="unlimited")
    found = list(scheduled_orders(graph, rewrites.simulated(plan)))
    times = [rewrites.nanoseconds(replace(plan, written_order=order)) for order in found]
    arrivals = times[1::3]
    assert min(arrivals) < 0.9 * min(time for time in times if time not in arrivals)


def test_an_order_begins_with_the_longest_path() -> None:
    """The longest path of an operation is at least that of whatever reads its outputs."""
    graph = graph_of("mlp")
    simulated = simulation(graph, tofu.partition(graph, 2, "data-parallel"), "p100-node")
    end = simulated.unhindered()
    assert max(end) == pytest.approx(simulated.timeline.critical_path_seconds * 1e9)
    made = {tensor: each.index for each in graph.operations for tensor in each.outputs}
    for operation in graph.operations:
        assert all(end[made[t]] <= end[operation.index] for t in operation.inputs if t in made)


def test_transfers_go_in_hops_if_plans_may_keep_copies() -> None:
    graph = graph_of("mlp")
    before, after = rewritten(graph, "2x-p100-node", "data-parallel", 8)
    assert after.nanoseconds < before.nanoseconds
    assert after.plan.layouts != before.plan.layouts
    tofu.verify(graph, after.plan)
    _, without = rewritten(graph, "2x-p100-node", "data-parallel", 8, keep=False)
    assert not without.plan.copies
    vias = ({layout.via for layout in each.plan.layouts.values()} for each in (without, before))
    assert set.issubset(*vias)
    assert after.nanoseconds < without.nanoseconds


def test_a_plan_that_does_not_fit_is_not_kept() -> None:
    asked = search_of(layers(), "p100-node", 2)
    plan = tofu.partition(layers(), 2, "wu-2016")
    limit = tofu.partitioner.peak_bytes(layers(), plan)
    _, free = rewritten(layers(), "p100-node", "wu-2016", 2)
    assert tofu.partitioner.peak_bytes(layers(), free.plan) > limit, "else the limit limits nothing"
    memory = WorkerMemory(limit, partial(tofu.partitioner.peak_bytes, layers()), None)
    kept, _ = rewrites_of(replace(asked, memory=memory))
    found = kept.best(Timed(kept.nanoseconds(plan), plan))
    assert tofu.partitioner.peak_bytes(layers(), found.plan) <= limit


def test_stops_of_equal_homes_are_taken_over() -> None:
    graph = graph_of("mlp")
    _, after = rewritten(graph, "2x-p100-node", "data-parallel", 8)
    stopping = [name for name, layout in after.plan.layouts.items() if layout.via is not None]
    assert stopping
    bare = {name: replace(layout, via=None) for name, layout in after.plan.layouts.items()}
    plan = with_stops(graph, replace(after.plan, layouts=bare), after.plan)
    assert plan.layouts == after.plan.layouts
    assert plan.cost_bytes == after.plan.cost_bytes
