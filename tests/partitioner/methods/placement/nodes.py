"""Training graphs as nodes, with the times of a preset machine."""

from __future__ import annotations

import tofu
from tofu.dataflow.graph import Graph
from tofu.partitioner.methods.placement.devices import devices_of
from tofu.partitioner.methods.placement.grouped_plan import whole_operations
from tofu.partitioner.methods.placement.training import TrainingNodes, operation_times, training_nodes
from tofu.simulator.times import task_times

MACHINE = tofu.machines.load("dgx-1-v100")
WORKERS = 4


def nodes_of(graph: Graph) -> TrainingNodes:
    kinds = devices_of(MACHINE, WORKERS, None).kind
    times = operation_times(graph, task_times(graph, MACHINE, WORKERS), kinds, whole_operations(graph))
    return training_nodes(graph, times)
