"""Operations whose working set exceeds a device: several neighbours share them, as a plan for these says.

The operations that overwrite one tensor are shared together, with the tensor. Others stay whole. In the
arrays of placers a shared operation is a node that takes the time of a share, and of which each neighbour
holds the bytes of one, see `neighbourhoods`. That is an approximation: the arenas of plans are exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....dataflow.graph import Graph
from ....support.integers import Integers
from ...plans.plan import Plan
from .graph import PlacementGraph
from .grouped_plan import Inside, inside_of
from .mend import least_bytes
from .neighbourhoods import part_bytes
from .training import TrainingNodes


def too_large(nodes: PlacementGraph, memory_bytes: int) -> npt.NDArray[np.bool_]:
    """Tell which nodes need more memory than a device has, or share a worker with one that does."""
    return np.isin(nodes.leader, nodes.leader[least_bytes(nodes) > memory_bytes])


def shares_of(training: TrainingNodes, shared: npt.NDArray[np.bool_], plan: Plan) -> Inside:
    """Return how workers share some nodes, and the tensors that only these hold, as a plan for them says."""
    graph, roots = training.graph, training.graph.roots
    inside = inside_of(graph, plan)
    here = shared[training.first_operation :]
    operations = [each for each in graph.operations if here[each.index]]
    held = {roots[tensor] for each in operations for tensor in each.outputs}
    held |= _read_alone(graph, here.tolist(), roots)
    names = [graph.tensors[tensor].name for tensor in sorted(held)]
    return Inside(
        {each.name: inside.operations[each.name] for each in operations},
        {name: inside.tensors[name] for name in names},
        plan.workers,
    )


def _read_alone(graph: Graph, shared: list[bool], roots: tuple[int, ...]) -> set[int]:
    """Return the tensors that nothing makes, and that shared operations alone read."""
    made = {roots[tensor] for each in graph.operations for tensor in each.outputs}
    elsewhere = {tensor for each in graph.operations if not shared[each.index] for tensor in each.inputs}
    read = {tensor for each in graph.operations if shared[each.index] for tensor in each.inputs}
    return {tensor for tensor in read - elsewhere - made if roots[tensor] == tensor}


def with_shares(
    nodes: PlacementGraph, shared: npt.NDArray[np.bool_], nanoseconds: Integers, workers: int
) -> PlacementGraph:
    """Return the graph in which some nodes take the given times, `[kinds, n]`, and the bytes of a share."""
    found = replace(
        nodes,
        nanoseconds=np.where(shared, nanoseconds, nodes.nanoseconds),
        shared_nodes=np.flatnonzero(shared),
        parts=workers,
    )
    mixed = shared[nodes.maker[nodes.in_place]]
    return replace(
        found,
        stored_bytes=np.where(shared[nodes.maker], part_bytes(found, nodes.stored_bytes), nodes.stored_bytes),
        scratch_bytes=np.where(shared, part_bytes(found, nodes.scratch_bytes), nodes.scratch_bytes),
        in_place=nodes.in_place[mixed[:, 0] == mixed[:, 1]],
    )
