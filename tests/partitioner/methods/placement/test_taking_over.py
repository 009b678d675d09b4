"""Live bytes of placements are those of the memory plan, outputs in place of inputs included."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.partitioner.methods.placement.grouped_plan import grouped_plan, whole_operations
from tofu.partitioner.methods.placement.lifetimes import live_intervals
from tofu.partitioner.methods.placement.stays import kept_until, stays, ticks_of
from tofu.partitioner.methods.placement.taking_over import bytes_taken_over, most_taken_over, taken_pairs
from tofu.partitioner.methods.placement.training import TrainingNodes
from tofu.partitioner.plans.space import Space
from tofu.programs.memory import buffer_lifetimes, in_place_hosts
from tofu.programs.program import BufferKind, PartitionedGraph

from .drawn_graphs import drawn_order
from .nodes import nodes_of


def held_by_programs(found: TrainingNodes, programs: PartitionedGraph, order: np.ndarray) -> np.ndarray:
    """Return the most live bytes during each operation, of nodes and values: `[worker, tick]`.

    Outputs of the graph live throughout.
    """
    graph, lifetimes = found.graph, buffer_lifetimes(programs)
    made = {tensor for each in graph.operations for tensor in each.outputs}
    known = made | set(found.written)
    outputs = {graph.roots[tensor] for tensor in graph.outputs}
    hosts = in_place_hosts(programs, lifetimes)
    place = {node - found.first_operation: tick for tick, node in enumerate(order.tolist())}
    last: dict[int, int] = {}
    for program in programs.programs:
        for each in program.instructions:
            last[each.operation] = max(last.get(each.operation, 0), each.tick)
    rows = np.zeros((len(programs.programs), len(order)), np.int64)
    for worker, program in enumerate(programs.programs):
        live = np.zeros(programs.ticks + 3, np.int64)
        for buffer in program.buffers:
            birth, death = lifetimes.births[worker][buffer.index], lifetimes.deaths[worker][buffer.index]
            if buffer.tensor not in known or death < birth:
                continue
            if buffer.kind is BufferKind.SHARD and graph.roots[buffer.tensor] in outputs:
                birth, death = 0, programs.ticks
            live[birth : death + 1] += buffer.nbytes
            if hosts[worker][buffer.index] != buffer.index:
                live[birth] -= buffer.nbytes
        begins = 0
        for operation, tick in sorted(last.items(), key=lambda each: each[1]):
            rows[worker, place[operation]] = live[begins : tick + 1].max()
            begins = tick + 1
    return rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("model", "workers"), [("lenet", 1), ("lenet", 3), ("mlp", 2), ("lstm", 4)])
def test_live_bytes_are_those_of_the_memory_plan(model: str, workers: int, seed: int) -> None:
    """Only the gradient of a concatenation holds less than what placements count: a part of what it reads."""
    options = {"steps": 3, "hidden": 16} if model == "lstm" else {}
    graph = tofu.models.get(model, batch=4, **options).training_graph()
    found, draw = nodes_of(graph), np.random.default_rng(seed)
    nodes = found.nodes
    worker = draw.integers(0, workers, nodes.count)[nodes.leader]
    drawn = drawn_order(draw, nodes)
    first = found.first_operation
    order = np.concatenate([np.arange(first), drawn[drawn >= first]])
    plan = grouped_plan(
        graph,
        whole_operations(graph),
        workers,
        found.of_operations(worker).tolist(),
        found.order_of(order),
        Space(feed="anywhere"),
    )
    expected = held_by_programs(found, tofu.lower(graph, plan), order)
    live = live_intervals(nodes, workers, order, worker)
    rows = np.array([live.live_bytes(each) for each in range(workers)])
    excess = (rows - expected)[:, first:]
    assert (excess >= 0).all()
    different = {nodes.names[order[first + tick]] for tick in np.flatnonzero(excess.any(axis=0))}
    assert all(".grad.Concat." in name for name in different)


def test_outputs_take_over_inputs_at_all() -> None:
    """Of an LSTM on one worker, many outputs do, and none more than its node may."""
    found = nodes_of(tofu.models.get("lstm", batch=4, steps=3, hidden=16).training_graph())
    nodes = found.nodes
    order, worker = np.arange(nodes.count), np.zeros(nodes.count, np.int64)
    tick = ticks_of(order)
    read = stays(nodes, tick, worker)
    taken = taken_pairs(nodes, tick, worker, read, kept_until(nodes, tick, worker, read))
    over = bytes_taken_over(nodes, taken)
    assert np.count_nonzero(over) > 50
    assert (over <= most_taken_over(nodes)).all()
