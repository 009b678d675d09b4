"""Operations whose working set exceeds a device: several neighbours share them, as a plan for these says.

The operations that overwrite one tensor are shared together, with the tensor. Others stay whole. In the
arrays of placers a shared operation is a node of one worker that takes the time of a share and holds the
bytes of one. That is an approximation: the arenas of plans are exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....dataflow.graph import Graph, Role
from ...plans.plan import Plan
from .graph import IntegerLists, Integers, PlacementGraph
from .grouped_plan import Inside, inside_of
from .mend import least_bytes
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
    """Return the tensors that nothing makes, and that shared operations alone read; data excepted."""
    made = {roots[tensor] for each in graph.operations for tensor in each.outputs}
    elsewhere = {tensor for each in graph.operations if not shared[each.index] for tensor in each.inputs}
    read = {tensor for each in graph.operations if shared[each.index] for tensor in each.inputs}
    return {
        tensor
        for tensor in read - elsewhere - made
        if roots[tensor] == tensor and graph.tensors[tensor].role is not Role.DATA
    }


def with_shares(
    nodes: PlacementGraph, shared: npt.NDArray[np.bool_], nanoseconds: Integers, workers: int
) -> PlacementGraph:
    """Return the graph in which some nodes take the given times, `[kinds, n]`, and the bytes of a share.

    A value that shared nodes read gets a second value of the size of a share, which they read instead.
    """
    value, reader = nodes.readers.row_of_entries, nodes.readers.entries
    moved = shared[reader]
    read, second = np.unique(value[moved], return_inverse=True)
    value = value.copy()
    value[moved] = len(nodes.maker) + second
    order = np.lexsort((reader, value))
    stored = np.where(shared[nodes.maker], _share(nodes.stored_bytes, workers), nodes.stored_bytes)
    return replace(
        nodes,
        nanoseconds=np.where(shared, nanoseconds, nodes.nanoseconds),
        maker=np.append(nodes.maker, nodes.maker[read]),
        sent_bytes=np.append(nodes.sent_bytes, _share(nodes.sent_bytes[read], workers)),
        stored_bytes=np.append(stored, np.zeros(len(read), np.int64)),
        readers=IntegerLists.grouped(value[order], reader[order], len(nodes.maker) + len(read)),
        lasting=np.append(nodes.lasting, np.zeros(len(read), bool)),
        scratch_bytes=np.where(shared, _share(nodes.scratch_bytes, workers), nodes.scratch_bytes),
        in_place=nodes.in_place[~shared[nodes.maker[nodes.in_place]].any(axis=1)],
    )


def _share(nbytes: Integers, workers: int) -> Integers:
    return -(-nbytes // workers)
