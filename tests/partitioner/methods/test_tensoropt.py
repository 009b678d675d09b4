"""The cost model of TensorOpt: its frontier is that of enumeration, and points say what their plans take."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Phase
from tofu.errors import PlanError
from tofu.partitioner import partition, peak_bytes
from tofu.partitioner.methods import tensoropt
from tofu.partitioner.methods.search import prepared
from tofu.partitioner.methods.settings import SearchSettings
from tofu.partitioner.problem.plan_choices import choices_of
from tofu.partitioner.problem.problem import Chosen
from tofu.partitioner.solvers.errors import WidthError
from tofu.simulator.times import task_times

from .elements import moved_bytes
from .every_plan import EveryPlan
from .training_graphs import one_layer

MACHINE = "dgx-h100"


@pytest.fixture(scope="module")
def graph():
    return tofu.models.get("mlp", batch=32).training_graph()


def modelled(graph, workers=2, **settings):
    return tofu.frontier(
        graph, workers, MACHINE, "unlimited", recompute=(1,), cost_model="tensoropt", **settings
    )


def held_bytes(graph, plan):
    """Return the mean over workers of what the model counts, from the regions of a plan's layouts."""
    forward = {t for op in graph.operations if op.phase is Phase.FORWARD for t in op.outputs}
    later = {
        t
        for op in graph.operations
        for name, t in zip(op.bound.description.tensor_names, op.inputs, strict=True)
        if op.phase is not Phase.FORWARD and name in op.bound.reads
    }
    counted = [t for t in graph.tensors if t.role.persistent or t.index in forward & later]
    total = 0
    for tensor in counted:
        if tensor.alias is None:
            regions = np.array(plan.layouts[tensor.name].regions)
            total += 4 * int((regions[..., 1] - regions[..., 0]).prod(axis=-1).sum())
    return -(-total // plan.workers)


@pytest.mark.parametrize("seed", range(6))
def test_the_frontier_is_that_of_enumeration(toy, texts, seed):
    random = np.random.default_rng(seed)
    graph = one_layer(toy, texts, random, 2 + seed % 3)
    every = EveryPlan(graph, 2, partition(graph, 2, keep=False))
    problem, _ = prepared(graph, 2, SearchSettings(machine=MACHINE, objective="step-time"))
    pairs = set()
    for plan in every.plans():
        strategies, dimensions = choices_of(problem, plan)
        chosen = Chosen(problem, plan.factors, tuple(strategies), tuple(dimensions))
        pairs.add((held_bytes(graph, plan), problem.objective.total(chosen) / 1e12))
    expected = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
    found = modelled(graph)
    assert {(point.peak_bytes, point.seconds) for point in found.points} == expected
    assert {(point.peak_bytes, point.seconds) for point in found.lower} == expected


def test_times_are_sums_without_overlap(toy, texts):
    """Every operation takes as long as its slowest worker, every transfer its latency and its bytes."""
    graph = one_layer(toy, texts, np.random.default_rng(2), 4)
    machine = tofu.machines.load(MACHINE)
    level, times = machine.levels[0], task_times(graph, machine, 2)
    for point in modelled(graph).points:
        plan, seconds = point.plan, 0.0
        layouts = {t.index: plan.layouts[t.name].form for t in graph.tensors}
        for operation in graph.operations:
            boxes = np.array([task.box for task in plan.tasks[operation.name]])
            seconds += times(operation, np.arange(2), boxes).max() / 1e9
            for moved in moved_bytes(
                graph, operation, plan.strategies[operation.name], layouts, plan.factors
            ).values():
                seconds += (moved > 0) * level.latency_seconds + moved / (2 * level.bytes_per_second)
        assert point.seconds == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_points_say_what_their_plans_take(graph, workers):
    found = modelled(graph, workers)
    assert found.cost_model == "tensoropt"
    for one, other in pairwise(found.points):
        assert one.peak_bytes < other.peak_bytes
        assert one.seconds > other.seconds
    for point in found.points:
        point.plan.verify(graph)
        assert point.peak_bytes == held_bytes(graph, point.plan)
        assert point.taken.peak_bytes == peak_bytes(graph, point.plan) > point.peak_bytes
        taken = tofu.simulate(tofu.lower(graph, point.plan), MACHINE).seconds
        assert point.taken.seconds == point.plan.step_seconds == taken


def test_what_is_allowed_and_computed_again(graph):
    split, again = modelled(graph, replicate=False), tofu.frontier(graph, 2, MACHINE, cost_model="tensoropt")
    for point in modelled(graph).points:
        assert again.plan(memory=point.peak_bytes).step_seconds
        assert min(p.seconds for p in again.points if p.peak_bytes <= point.peak_bytes) <= point.seconds
    assert again.points[0].recompute == 8
    assert again.points[0].peak_bytes < modelled(graph).points[0].peak_bytes
    assert split.points[-1].seconds >= modelled(graph).points[-1].seconds


def test_of_wide_models_points_are_thinned_or_plans_recombined(graph, monkeypatch):
    exact, solve, most = modelled(graph), tensoropt.least_frontier, [1 << 10]

    def narrow(domains, pairs, *, points_limit, table_limit):
        if points_limit is None or max(domains) > most[0]:
            raise WidthError("too wide", 1)
        return solve(domains, pairs, points_limit=points_limit, table_limit=table_limit)

    monkeypatch.setattr(tensoropt, "least_frontier", narrow)
    assert [p.seconds for p in modelled(graph).points] == [p.seconds for p in exact.points]
    monkeypatch.setattr(tensoropt, "MOST_CHOICES", 0)
    for values in (1 << 10, 2):
        most[0] = values
        made = modelled(graph)
        for point in made.points:
            least = [p for p in exact.points if p.peak_bytes <= point.peak_bytes]
            assert least[-1].seconds <= point.seconds
        assert len(made.lower) == 1
        assert made.lower[0].peak_bytes <= exact.points[0].peak_bytes
        assert made.lower[0].seconds <= exact.points[-1].seconds
    most[0] = 0
    with pytest.raises(PlanError, match="finds no frontier: too wide"):
        modelled(graph)


def test_mistakes(graph):
    with pytest.raises(PlanError, match="there is no cost model 'tensor'; there are: simulated, tensoropt"):
        tofu.frontier(graph, 2, MACHINE, cost_model="tensor")
    with pytest.raises(PlanError, match="at most 1,000 bytes by the cost model 'tensoropt': the least is"):
        tofu.frontier(graph, 2, MACHINE, 1000, cost_model="tensoropt")
    with pytest.raises(PlanError, match="finds one plan"):
        tofu.frontier(graph, 2, MACHINE, method="data-parallel", cost_model="tensoropt")
