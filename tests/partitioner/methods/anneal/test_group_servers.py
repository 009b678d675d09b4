"""Large variables with a part in each group and small ones on one worker: a start with few messages."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.partitioner import in_several_hops, partition, simulation
from tofu.partitioner.methods.anneal.group_servers import LARGE_BYTES, served_by_groups

from ..one_iteration import weights_after

WORKERS = 8
TWO_NODES = tofu.machines.load("2x-p100-node")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return tofu.models.get("lenet", batch=64).training_graph()


def test_large_variables_have_a_part_in_each_group_and_small_ones_one_server(graph: Graph) -> None:
    plan = served_by_groups(graph, WORKERS, TWO_NODES)
    tofu.verify(graph, plan)
    small, large = set[int](), []
    for tensor in graph.tensors:
        if tensor.role is not Role.PARAMETER or tensor.alias is not None:
            continue
        workers = plan.layouts[tensor.name].expanded.workers.tolist()
        if tensor.nbytes < LARGE_BYTES:
            (worker,) = workers
            small.add(worker)
        else:
            assert [worker // 4 for worker in workers] == [0, 1]
            large.append(tensor.name)
    assert {worker // 4 for worker in small} == {0, 1}
    assert large == ["fc1_weight"]


def test_it_trains_as_data_parallelism(graph: Graph) -> None:
    plans = partition(graph, WORKERS, "data-parallel"), served_by_groups(graph, WORKERS, TWO_NODES)
    one, other = (weights_after(graph, each) for each in plans)
    for name, weight in one.items():
        np.testing.assert_allclose(weight, other[name], rtol=1e-3, atol=1e-5)


def test_in_several_hops_it_beats_other_servers() -> None:
    graph = tofu.models.get("resnet-18", batch=256).training_graph()

    def seconds(plan: tofu.Plan) -> float:
        return simulation(graph, plan, TWO_NODES).seconds

    plans = served_by_groups(graph, WORKERS, TWO_NODES), partition(graph, WORKERS, "ps-load-balancing")
    found, others = (in_several_hops(graph, plan, TWO_NODES, seconds) for plan in plans)
    assert seconds(found) < seconds(others)


@pytest.mark.parametrize("machine", ["p100-node", "16x-p100-node"])
def test_workers_without_groups_have_no_such_plan(graph: Graph, machine: str) -> None:
    workers = {"p100-node": 4, "16x-p100-node": 1}[machine]
    with pytest.raises(PlanError, match="not in groups"):
        served_by_groups(graph, workers, tofu.machines.load(machine))
