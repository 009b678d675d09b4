"""Training graphs as nodes, with the times of a preset machine, and random placements of them."""

from __future__ import annotations

import numpy as np

import tofu
from tofu.dataflow.graph import Graph
from tofu.partitioner.methods.placement.devices import devices_of
from tofu.partitioner.methods.placement.emulate import emulate
from tofu.partitioner.methods.placement.grouped_plan import grouped_plan, inside_of, whole_operations
from tofu.partitioner.methods.placement.shares import shares_of
from tofu.partitioner.methods.placement.training import TrainingNodes, operation_times, training_nodes
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.space import Space
from tofu.simulator.times import task_times

MACHINE = tofu.machines.load("dgx-1-v100")
WORKERS = 4


def nodes_of(graph: Graph) -> TrainingNodes:
    kinds = devices_of(MACHINE, WORKERS, None).kind
    times = operation_times(graph, task_times(graph, MACHINE, WORKERS), kinds, whole_operations(graph))
    return training_nodes(graph, times)


def random_placement(
    graph: Graph,
    groups: int,
    size: int,
    seed: int,
    feed: str = "batch",
    shared: float = 0.0,
    among: int = 0,
) -> Plan:
    """Return a plan with a random group for every operation that leads, in a random order.

    A number of workers, all by default, share about a part of the operations.
    """
    found, draw = nodes_of(graph), np.random.default_rng(seed)
    drawn = draw.integers(0, groups, found.nodes.count)[found.nodes.leader]
    inside = whole_operations(graph)
    if size > 1:
        inside = inside_of(graph, tofu.partition(graph, size, method="refine", keep=False))
    devices = devices_of(MACHINE, groups, None)
    order = emulate(found.nodes, devices, drawn, draw.permutation(found.nodes.count)).order
    placed = found.of_operations(drawn).tolist()
    in_shares = None
    if shared:
        workers = among or groups * size
        plan = tofu.partition(graph, workers, method="refine", keep=False, feed="anywhere")
        chosen = (draw.random(found.nodes.count) < shared)[found.nodes.leader]
        in_shares = shares_of(found, chosen, plan)
    return grouped_plan(graph, inside, groups, placed, found.order_of(order), Space(feed=feed), in_shares)
