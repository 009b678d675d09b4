"""The duties of every method: a plan that verifies, lowers, and costs what a recount says."""

from __future__ import annotations

from itertools import pairwise

import pytest

import tofu
from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.plans.plan import contributors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 2, 4, 6, 8])
@pytest.mark.parametrize("keep", [False, True])
def test_plans_verify_and_lower(graph, method, workers, keep):
    plan = partition(graph, workers, method=method, keep=keep)
    assert plan.method == method
    plan.verify(graph)
    assert lower(graph, plan).planned_bytes == plan.cost_bytes
    versions = plan.versions_read(graph)
    totals = count_bytes(graph, plan.layouts, plan.strategies, plan.factors, versions)
    assert [after - before for before, after in pairwise(totals)] == list(plan.step_cost_bytes)
    assert totals[-1] == plan.cost_bytes == sum(entry.bytes for entry in contributors(graph, plan))


@pytest.mark.parametrize(
    "method", ["data-parallel", "ps", "partitioned-ps", "all-reduce", "partitioned-all-reduce", "flexflow"]
)
@pytest.mark.parametrize("loss", [tofu.sym.sum, tofu.sym.mean])
def test_a_loss_may_be_one_number_for_the_whole_batch(method, loss):
    """Its gradient has the loss among its inputs, but reads no element of it."""
    made = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=4)
    graph = tofu.training_graph(tofu.sym.MakeLoss(loss(tofu.sym.square(made))), {"data": (4, 3)})
    more = {"machine": "pcie-8", "proposals": 2} if method == "flexflow" else {}
    plan = tofu.partition(graph, 2, method, **more)
    plan.verify(graph)
    assert lower(graph, plan).planned_bytes == plan.cost_bytes
