"""Transfers in several hops: faster where links differ, checked as every plan, and with equal results."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.machines.machine import Machine
from tofu.partitioner import partition, simulation
from tofu.partitioner.methods.several_hops import SeveralHops, in_several_hops

from .one_iteration import weights_after

WORKERS = 8


@pytest.fixture(scope="module")
def two_nodes() -> Machine:
    """Two nodes of four devices, with a slow link between them."""
    return tofu.machines.load("2x-p100-node")


@pytest.fixture(scope="module")
def graph():
    return tofu.models.get("mlp", batch=512).training_graph()


def rerouted(graph, plan, machine):
    return in_several_hops(graph, plan, machine, lambda each: simulation(graph, each, machine).seconds)


@pytest.mark.parametrize("method", ["data-parallel", "recursive"])
def test_two_hops_beat_one_over_a_slow_link(graph, two_nodes, method):
    plan = partition(graph, WORKERS, method)
    found = rerouted(graph, plan, two_nodes)
    found.verify(graph)
    tofu.verify(graph, found)
    before, after = (tofu.simulate(tofu.lower(graph, each), two_nodes).seconds for each in (plan, found))
    assert after < 0.8 * before
    assert found.strategies == plan.strategies


def test_ways_that_are_found_for_one_plan_serve_others(graph, two_nodes):
    """All plans of a search share what is known of ways, and get those that they would get alone."""
    plans = [partition(graph, WORKERS, method) for method in ("data-parallel", "recursive", "refine")]
    (factors,) = {plan.factors for plan in plans}
    shared = SeveralHops(graph, two_nodes, WORKERS, factors)
    for plan in (*plans, *plans):
        found = shared.faster(plan, lambda each: simulation(graph, each, two_nodes).seconds)
        alone = rerouted(graph, plan, two_nodes)
        assert found is not plan
        assert (found.layouts, found.copies) == (alone.layouts, alone.copies)


def test_a_plan_that_went_in_several_hops_trains_alike(graph, two_nodes):
    plan = partition(graph, WORKERS, "data-parallel")
    one, other = (weights_after(graph, each) for each in (plan, rerouted(graph, plan, two_nodes)))
    for name, weight in one.items():
        np.testing.assert_allclose(weight, other[name], rtol=1e-4)


@pytest.mark.parametrize("name", ["dgx-a100", "p100-node"])
def test_devices_of_one_group_take_one_hop(graph, name):
    machine = tofu.machines.load(name)
    workers = len(machine.devices)
    plan = partition(graph, workers)
    assert rerouted(graph, plan, machine) is plan


def test_what_is_small_enters_each_node_by_one_worker(graph, two_nodes):
    """A server sends a bias of 10 elements to one worker of the other node, which shares it out."""
    plan = partition(graph, WORKERS, "ps")
    found = rerouted(graph, plan, two_nodes)
    found.verify(graph)
    tofu.verify(graph, found)
    (copy,) = found.copies["fc3_bias"]
    holders = [worker for worker, _ in copy.form.boxes]
    assert [worker // 4 for worker in holders] == [0, 1]
    before, after = (simulation(graph, each, two_nodes).seconds for each in (plan, found))
    assert after < 0.8 * before


def test_nothing_is_kept_that_takes_longer(graph, two_nodes):
    """Every proposal that measures refuse leaves the plan as it is."""
    plan = partition(graph, WORKERS, "data-parallel")
    tried = []

    def seconds(each):
        tried.append(each)
        return float(len(tried))

    assert in_several_hops(graph, plan, two_nodes, seconds) is plan
    assert len(tried) > 2


def test_frontiers_have_plans_in_several_hops(graph, two_nodes):
    found, without = (
        tofu.frontier(graph, WORKERS, two_nodes, recompute=(1,), keep=keep).points[-1]
        for keep in (True, False)
    )
    assert found.plan.copies
    assert not without.plan.copies
    assert found.seconds < without.seconds
