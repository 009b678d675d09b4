"""Simulated placements obey the times of nodes and messages, and the order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tofu
from tofu.machines.machine import uniform
from tofu.machines.machine_file import decode_machine
from tofu.partitioner.methods.placement.bound import lower_bound
from tofu.partitioner.methods.placement.devices import devices_of, kinds_of
from tofu.partitioner.methods.placement.graph import PlacementGraph
from tofu.partitioner.methods.placement.simulated import simulate_placement
from tofu.support.integer_lists import IntegerLists
from tofu.support.strict_documents import parse_yaml

from .drawn_graphs import drawn, drawn_order, drawn_workers

MACHINE = tofu.machines.load("dgx-1-v100")
IN_TURN = """
machine: box
levels: [{name: thread, bandwidth: 1 GB/s, latency: 1 us}]
devices: [a, b]
kinds:
  cpu:
    {rates: {float32: 1 GFLOP/s}, memory_bandwidth: 2 GB/s, kernel_start: 0, in_turn: true, wake: 5 us}
kind: cpu
"""


@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 25), workers=st.integers(1, 8))
def test_nothing_runs_too_early(seed: int, nodes: int, workers: int) -> None:
    generator = np.random.default_rng(seed)
    graph = drawn(generator, nodes, sizes=10**6)
    devices = devices_of(MACHINE, workers, None)
    order, worker = drawn_order(generator, graph), drawn_workers(generator, graph, workers)
    found = simulate_placement(graph, devices, MACHINE, order, worker)
    ends = found.start + graph.nanoseconds[devices.kind[worker], np.arange(nodes)]
    assert found.nanoseconds >= ends.max()
    assert found.nanoseconds >= lower_bound(graph, devices)
    for value, reader in zip(graph.readers.row_of_entries, graph.readers.entries, strict=True):
        source, target = worker[graph.maker[value]], worker[reader]
        takes = devices.latency[source, target] + graph.sent_bytes[value] * devices.per_byte[source, target]
        assert found.start[reader] >= ends[graph.maker[value]] + takes - 1
    for before, after in graph.edges:
        assert found.start[after] >= ends[before]
    for each in range(workers):
        own = order[worker[order] == each]
        assert (found.start[own[1:]] >= ends[own[:-1]]).all()
    if workers == 1:
        assert found.nanoseconds == graph.nanoseconds[0].sum()


def two_values() -> PlacementGraph:
    """Return a node whose two values go to another worker, the second one for the reader that runs first."""
    return PlacementGraph(
        names=("make", "early", "late"),
        nanoseconds=np.array([[1000, 1000, 1000]]),
        maker=np.array([0, 0]),
        sent_bytes=np.array([1000, 3000]),
        stored_bytes=np.array([1000, 3000]),
        readers=IntegerLists.of([[2], [1]]),
        after=IntegerLists.of([[], [], []]),
        leader=np.arange(3),
        lasting=np.zeros(2, bool),
        scratch_bytes=np.zeros(3, np.int64),
    )


def test_messages_share_links_in_the_order_of_need() -> None:
    box = replace(uniform("box", [("gpu", 2, 1e9)]), kinds=(MACHINE.kind(0),) * 2)
    devices = devices_of(box, 2, None)
    assert devices.memory_bytes is None
    found = simulate_placement(two_values(), devices, box, np.arange(3), np.array([0, 1, 1]))
    assert found.start.tolist() == [0, 4000, 5000]
    assert found.nanoseconds == 6000


def test_a_thread_that_serves_in_turn_receives_between_nodes() -> None:
    """Worker 1 wakes and copies 3 us for the first reader, runs it, and copies 1 us for the second one."""
    box = decode_machine(parse_yaml(IN_TURN.encode()))
    devices = devices_of(box, 2, None)
    found = simulate_placement(two_values(), devices, box, np.arange(3), np.array([0, 1, 1]))
    first = 1000 + 1000 + 5000 + 3000
    assert found.start.tolist() == [0, first, first + 1000 + 1000 + 5000 + 1000]


def test_devices_are_those_of_the_machine() -> None:
    joined = tofu.machines.load("2x-dgx-1-v100")
    devices = devices_of(joined, 16, joined.memory_of(16))
    assert devices.memory_bytes.tolist() == [joined.memory_bytes] * 16
    path = joined.path(0, 9)
    assert devices.latency[0, 9] == round(path.latency_seconds * 1e9)
    assert devices.per_byte[0, 9] == pytest.approx(1e9 / path.bytes_per_second)
    assert kinds_of(joined, 16) == ("v100",)
    assert devices_of(joined, 3, [7] * 3).memory_bytes.tolist() == [7, 7, 7]
    assert devices_of(joined, 3, None).memory_bytes is None
