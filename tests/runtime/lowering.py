"""How the runtime's tests partition: by the default search."""

from __future__ import annotations

from tofu.dataflow.graph import Graph
from tofu.partitioner import lower, partition
from tofu.programs.program import PartitionedGraph


def lowered(graph: Graph, workers: int) -> PartitionedGraph:
    return lower(graph, partition(graph, workers))
