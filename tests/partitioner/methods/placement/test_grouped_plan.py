"""Plans on groups: legal, with bytes that are what moves, and trained as by one worker."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.partitioner.methods.placement.grouped_plan import grouped_plan, whole_operations
from tofu.partitioner.plans.space import Space

from ....runtime.test_partitioned_training import require_bits_of_one_worker, training
from ...conftest import UPDATE, Toy
from .nodes import nodes_of, random_placement


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("network", "steps"), [("perceptron", 2), ("convolutional", 1)])
def test_random_placements_train_as_one_worker_does(network: str, steps: int, seed: int) -> None:
    """To the bit, since all sums are exact."""
    graph = training(network)
    groups, size = ((2, 1), (5, 1), (2, 2), (3, 2))[seed]
    plan = random_placement(graph, groups, size, seed)
    tofu.verify(graph, plan)
    require_bits_of_one_worker(network, plan, steps)


def test_a_value_reaches_a_worker_once() -> None:
    """Its bytes are those that cross, whatever the number of readers."""
    graph = training("recurrent")
    plan = random_placement(graph, 3, 1, 0, feed="anywhere")
    worker = {name: tasks[0].worker for name, tasks in plan.tasks.items()}
    crossing = set()
    makers = {tensor: each for each in graph.operations for tensor in each.outputs}
    held = {name: versions[0].holdings for name, versions in plan.versions.items()}
    for operation in graph.operations:
        for place, _ in operation.bound.read_places:
            tensor = operation.inputs[place]
            homes = {holding.worker for holding in held[graph.tensors[tensor].name]}
            if worker[operation.name] not in homes:
                crossing.add((tensor, worker[operation.name]))
    assert any(tensor in makers for tensor, _ in crossing)
    nbytes = [np.prod(graph.tensors[t].shape, dtype=int) * graph.tensors[t].itemsize for t, _ in crossing]
    assert plan.cost_bytes == sum(nbytes)


def test_what_overwrites_a_tensor_runs_where_the_tensor_is() -> None:
    graph = training("perceptron")
    found = nodes_of(graph)
    leader = found.of_operations(found.nodes.leader) - found.first_operation
    assert {graph.operations[index].phase.value for index in leader[leader != range(len(leader))]} <= {
        "update"
    }
    chained = next(each for each in graph.operations if graph.tensors[each.outputs[0]].alias is not None)
    extra = [0] * len(graph.operations)
    plan = grouped_plan(graph, whole_operations(graph), 2, extra, None, Space())
    assert plan.layouts[graph.tensors[chained.outputs[0]].name].workers.tolist() == [0]


def unrolled() -> Graph:
    """Return a graph in which statistics pass from one micro-batch to the next."""
    return tofu.models.get("wresnet-10-2", batch=8).training_graph(accumulate=2, unroll=True)


@pytest.mark.parametrize(("groups", "size"), [(4, 1), (2, 2)])
def test_micro_batches_are_placed_apart(groups: int, size: int) -> None:
    graph = unrolled()
    plan = random_placement(graph, groups, size, seed=1)
    tofu.verify(graph, plan)
    assert tofu.lower(graph, plan).planned_bytes == plan.cost_bytes


def test_an_operation_apart_from_what_it_overwrites_is_refused() -> None:
    toy = Toy()
    rate = toy.tensor(1, role=Role.SCALAR, name="rate")
    weight, gradient = toy.tensor(5, 5, name="weight"), toy.tensor(5, 5, role=Role.DATA, name="gradient")
    once = toy.apply(UPDATE, weight, gradient, rate, aliases=(weight,))
    toy.apply(UPDATE, once, gradient, rate, aliases=(once,))
    with pytest.raises(PlanError, match="runs in group 0, but overwrites 'weight' of group 1"):
        grouped_plan(toy.graph(), whole_operations(toy.graph()), 2, [0, 1], None, Space())
