"""Operations that several workers share: legal plans that train as one worker does, within less memory."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import PlanError
from tofu.partitioner import peak_bytes
from tofu.partitioner.methods.pardnn.pardnn import place
from tofu.partitioner.methods.placement.graph import NodeSchedule
from tofu.partitioner.methods.placement.lifetimes import live_intervals
from tofu.partitioner.methods.placement.placing import Placing, tighter_limits
from tofu.partitioner.methods.placement.priorities import emulated
from tofu.partitioner.methods.placement.shares import too_large, with_shares
from tofu.partitioner.methods.simulated import SimulatedSearch
from tofu.partitioner.methods.worker_memory import WorkerMemory
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.live_bytes import LiveBytes

from ....runtime.test_partitioned_training import require_bits_of_one_worker, training
from .nodes import nodes_of, random_placement

MACHINE = "dgx-1-v100"


@pytest.mark.parametrize("feed", ["batch", "anywhere"])
@pytest.mark.parametrize(("groups", "size", "among"), [(2, 1, 2), (4, 1, 4), (4, 1, 2), (2, 2, 4), (4, 2, 4)])
@pytest.mark.parametrize(("network", "steps"), [("perceptron", 2), ("convolutional", 1)])
def test_random_shares_train_as_one_worker_does(
    network: str, steps: int, groups: int, size: int, among: int, feed: str
) -> None:
    """To the bit, since all sums are exact, and with the bytes that were planned."""
    graph = training(network)
    plan = random_placement(graph, groups, size, groups + size, feed, shared=0.5, among=among)
    tofu.verify(graph, plan)
    require_bits_of_one_worker(network, plan, steps)


def one_large_layer() -> Graph:
    """Return a graph whose largest weight takes most of the memory: 64 x 4096 numbers."""
    found = tofu.sym.Variable("data")
    for number, width in enumerate((64, 64, 4096, 16)):
        found = tofu.sym.FullyConnected(found, num_hidden=width, name=f"layer{number}")
    return tofu.training_graph(tofu.sym.SoftmaxOutput(found, name="softmax"), {"data": (8, 64)})


@pytest.mark.parametrize("method", ["pardnn", "place"])
def test_a_large_layer_is_shared_and_others_stay_whole(method: Literal["pardnn", "place"]) -> None:
    graph, limit = one_large_layer(), 3_000_000
    groups = {"groups": "4x1"} if method == "place" else {}
    plan = tofu.partition(graph, 4, method, machine=MACHINE, memory=limit, **groups)
    tofu.verify(graph, plan)
    assert peak_bytes(graph, plan) <= limit
    tasks = {name: len(found) for name, found in plan.tasks.items()}
    assert tasks["update(layer2_weight)"] > 1
    assert tasks["update(layer0_weight)"] == tasks["layer0.product"] == 1
    assert tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds == plan.step_seconds


def placed(graph: Graph, workers: int, limit: int) -> tuple[Placing, NodeSchedule]:
    """Return ParDNN's placement, for arenas within a limit."""
    machine, memory = tofu.machines.load(MACHINE), WorkerMemory(limit, partial(peak_bytes, graph), None)
    inside = partial(tofu.partition, graph, method="refine", keep=False, feed="anywhere")
    asked = SimulatedSearch(
        graph, workers, Space(feed="anywhere"), machine, Sampling(), None, lambda: (), memory, inside
    )
    placing = Placing(asked, workers)
    nodes, devices = placing.training.nodes, placing.devices
    return placing, emulated(nodes, devices, place(nodes, devices))[1]


@pytest.mark.parametrize(("limit", "sharing"), [(2_500_000, 2), (2_000_000, 4)])
def test_as_few_workers_share_it_as_is_fastest(limit: int, sharing: int) -> None:
    """Halves fit into 2.5 MB next to the rest, and take less time than quarters, which move more often."""
    graph = one_large_layer()
    placing, schedule = placed(graph, 4, limit)
    plan = placing.fitting(schedule)
    tofu.verify(graph, plan)
    assert peak_bytes(graph, plan) <= limit
    tasks = plan.tasks["update(layer2_weight)"]
    assert len({task.worker for task in tasks}) == len(tasks) == sharing


@pytest.mark.parametrize(("workers", "limit"), [(2, 2_000_000), (2, 2_200_000)])
def test_more_is_shared_if_nothing_else_helps(workers: int, limit: int) -> None:
    graph = one_large_layer()
    placing, schedule = placed(graph, workers, limit)
    with pytest.raises(PlanError):
        placing.fitting(schedule)
    plan = placing.fitting_tighter(schedule)
    assert peak_bytes(graph, plan) <= limit
    tofu.verify(graph, plan)


@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("share", [1.1, 1.25, 1.5])
def test_few_large_layers_fit_little_more_than_an_even_share(workers: int, share: float) -> None:
    """In the end all workers share all operations; a refusal lies below a bound on what these hold then."""
    graph = tofu.models.get("mlp").training_graph()
    limit = int(peak_bytes(graph, tofu.partition(graph, 1)) / workers * share)
    placing, schedule = placed(graph, workers, limit)
    try:
        plan = placing.fitting_tighter(schedule)
    except PlanError:
        assert LiveBytes.of(build_problem(graph)).least_bytes(workers) > limit
        return
    tofu.verify(graph, plan)
    assert peak_bytes(graph, plan) <= limit


def test_tighter_limits_are_shared_by_neighbours() -> None:
    assert tighter_limits(1 << 30)[:2] == [int(2 ** (179 / 6)), int(2 ** (178 / 6))]
    assert tighter_limits(10**9 + 1) == tighter_limits(10**9)
    assert all(0 < each < 10**9 for each in tighter_limits(10**9))
    assert tighter_limits(0) == tighter_limits(1) == []


def test_what_does_not_fit_even_if_it_is_shared_is_named() -> None:
    message = r"operation 'update\(layer2_weight\)' needs about 786,432 bytes .* and each has 400,000"
    with pytest.raises(PlanError, match=message):
        tofu.partition(one_large_layer(), 4, "pardnn", machine=MACHINE, memory=400_000)


def test_shared_nodes_take_a_share_of_time_and_bytes() -> None:
    found = nodes_of(one_large_layer())
    nodes = found.nodes
    large = too_large(nodes, 3_000_000)
    names = {name for name, chosen in zip(nodes.names, large, strict=True) if chosen}
    assert {"layer2_weight", "update(layer2_weight)"} <= names
    assert "layer0_weight" not in names
    halved = with_shares(nodes, large, nodes.nanoseconds // 2, 2)
    assert (halved.nanoseconds == np.where(large, nodes.nanoseconds // 2, nodes.nanoseconds)).all()
    own = large[nodes.maker]
    stored = halved.stored_bytes[: len(nodes.maker)]
    assert (stored == np.where(own, -(-nodes.stored_bytes // 2), nodes.stored_bytes)).all()
    assert (halved.edges == nodes.edges).all()
    order, worker = np.arange(nodes.count), np.zeros(nodes.count, np.int64)
    whole = live_intervals(nodes, 1, order, worker).peak_bytes
    first, second = live_intervals(halved, 2, order, worker).peak_bytes
    assert whole // 2 <= first <= whole
    assert 0 < second < whole
