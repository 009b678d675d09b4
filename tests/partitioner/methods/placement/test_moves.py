"""After any moves everything is as if it had been made from the new placement."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.lifetimes import live_intervals
from tofu.partitioner.methods.placement.live_tree import bytes_at, peak, peak_tick
from tofu.partitioner.methods.placement.movable import MovablePlacement, movable
from tofu.partitioner.methods.placement.moves import move
from tofu.partitioner.methods.placement.stays import stays, ticks_of

from .drawn_graphs import drawn, drawn_devices, drawn_order, drawn_shares, drawn_workers


def time_of(graph: PlacementGraph, devices: PlacementDevices, worker: np.ndarray) -> int:
    """Add up the time of all computations and messages."""
    home = worker[graph.maker]
    found = stays(graph, np.arange(graph.count), worker)
    source, target = home[found.value], found.worker
    nbytes = graph.sent_bytes[found.value]
    messages = devices.latency[source, target] + (nbytes * devices.per_byte[source, target] + 0.5).astype(int)
    computing = graph.nanoseconds[devices.kind[worker], np.arange(graph.count)]
    return int(messages[source != target].sum() + computing.sum())


def same(state: MovablePlacement, graph: PlacementGraph, order: np.ndarray, worker: np.ndarray) -> None:
    live = live_intervals(graph, state.workers, order, worker)
    for each in range(state.workers):
        row = live.live_bytes(each)
        assert [
            bytes_at(state.highest, state.added, state.leaves, each, tick) for tick in range(graph.count)
        ] == row.tolist()
        assert peak(state.highest, state.leaves, each) == row.max()
        assert row[peak_tick(state.highest, state.leaves, each)] == row.max()


@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 25), workers=st.integers(1, 4))
def test_moves_are_exact(seed: int, nodes: int, workers: int) -> None:
    generator = np.random.default_rng(seed)
    graph, devices = drawn(generator, nodes), drawn_devices(generator, workers)
    order, worker = drawn_order(generator, graph), drawn_workers(generator, graph, workers)
    state = movable(graph, devices, order, worker)
    for _ in range(8):
        node, target = int(generator.integers(nodes)), int(generator.integers(workers))
        before, source = time_of(graph, devices, worker), int(worker[node])
        cost = move(state, node, target)
        worker[node] = target
        assert cost == time_of(graph, devices, worker) - before
        same(state, graph, order, worker)
        found = stays(graph, ticks_of(order), worker)
        assert sum(state.stay_counts) == len(found.value)
        if generator.random() < 0.3:
            assert move(state, node, source) == -cost
            worker[node] = source
            same(state, graph, order, worker)


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(1, 25),
    shape=st.sampled_from([(2, 2), (4, 2), (4, 4), (3, 3)]),
)
def test_moves_next_to_nodes_that_neighbours_share_are_exact(
    seed: int, nodes: int, shape: tuple[int, int]
) -> None:
    """Their parts stay where they are, and what they read is at home until then."""
    workers, parts = shape
    generator = np.random.default_rng(seed)
    graph = drawn_shares(generator, drawn(generator, nodes), parts)
    devices = drawn_devices(generator, workers)
    order, worker = drawn_order(generator, graph), drawn_workers(generator, graph, workers)
    state = movable(graph, devices, order, worker)
    fixed = live_intervals(graph, workers, order, worker).fixed
    for node in generator.permutation(np.flatnonzero(~graph.shared))[:8].tolist():
        worker[node] = generator.integers(workers)
        move(state, node, int(worker[node]))
        same(state, graph, order, worker)
        now = live_intervals(graph, workers, order, worker).fixed
        for each in range(workers):
            assert (now.live_bytes(each) == fixed.live_bytes(each)).all()
