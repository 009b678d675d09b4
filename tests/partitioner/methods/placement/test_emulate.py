"""Emulated schedules are list schedules: workers and lanes take what is most urgent, one at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.emulate import emulate
from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.support.integer_lists import IntegerLists
from tofu.support.integers import Integers

from .random_graphs import joined_devices, random_graph, training_like


def written(
    times: list[int], readers: list[list[int]], sent: list[int], after: dict[int, list[int]]
) -> PlacementGraph:
    """Return a graph of one value for each node."""
    count = len(times)
    return PlacementGraph(
        names=tuple(map(str, range(count))),
        nanoseconds=np.array([times]),
        maker=np.arange(count),
        sent_bytes=np.array(sent),
        stored_bytes=np.array(sent),
        readers=IntegerLists.of(readers),
        after=IntegerLists.of([after.get(node, []) for node in range(count)]),
        leader=np.arange(count),
        lasting=np.zeros(count, bool),
        scratch_bytes=np.zeros(count, np.int64),
    )


def starts(
    graph: PlacementGraph, workers: int, worker: list[int], priority: list[int] | None = None
) -> list[int]:
    """Return the starts of all nodes; messages take 10 ns and 1 ns for each byte."""
    devices = joined_devices(workers, latency=10)
    urgency = np.zeros(graph.count, np.int64) if priority is None else np.array(priority)
    return emulate(graph, devices, np.array(worker), urgency).start.tolist()


def test_a_value_crosses_once_for_two_readers() -> None:
    graph = written([100, 50, 50], [[1, 2], [], []], [30, 0, 0], {})
    assert starts(graph, 2, [0, 1, 1]) == [0, 140, 190]
    assert starts(graph, 2, [0, 0, 1]) == [0, 100, 140]


def test_messages_wait_for_both_lanes() -> None:
    sends_two = written([100, 50, 50], [[1, 2], [], []], [30, 0, 0], {})
    assert starts(sends_two, 3, [0, 1, 2]) == [0, 140, 180]
    receives_two = written([100, 100, 50], [[2], [2], []], [30, 40, 0], {})
    assert starts(receives_two, 3, [0, 1, 2]) == [0, 0, 190]
    assert starts(receives_two, 3, [0, 1, 2], [0, 1, 0]) == [0, 0, 190]


def test_the_most_urgent_node_runs_first() -> None:
    graph = written([10, 20, 30], [[], [], []], [0, 0, 0], {})
    assert starts(graph, 1, [0, 0, 0]) == [0, 10, 30]
    assert starts(graph, 1, [0, 0, 0], [1, 2, 3]) == [50, 30, 0]


def test_order_takes_no_time_and_tensors_occupy_no_worker() -> None:
    graph = written([0, 70, 20, 5], [[1, 3], [], [], []], [8, 0, 0, 0], {1: [3]})
    assert starts(graph, 2, [0, 0, 0, 0], [0, 2, 3, 1]) == [0, 20, 0, 90]
    assert starts(graph, 2, [0, 1, 0, 0]) == [0, 18, 0, 88]


def arrivals(
    graph: PlacementGraph, devices: PlacementDevices, worker: Integers, by_end: list[int], end: Integers
) -> dict[tuple[int, int], int]:
    """Return when each value is on each worker that reads it, if nodes send in an order."""
    sends, receives = [0] * devices.workers, [0] * devices.workers
    there: dict[tuple[int, int], int] = {}
    for node in by_end:
        home = int(worker[node])
        for value in graph.values[node].tolist():
            there[value, home] = int(end[node])
            for target in worker[graph.readers[value]].tolist():
                if (value, target) not in there:
                    time = int(devices.per_byte[home, target] * graph.sent_bytes[value] + 0.5)
                    moment = max(int(end[node]), sends[home], receives[target])
                    moment += int(devices.latency[home, target]) + time
                    there[value, target] = sends[home] = receives[target] = moment
    return there


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_schedules_are_list_schedules(seed: int, workers: int) -> None:
    graph, devices = random_graph(seed, kinds=2), joined_devices(workers, kinds=2)
    draw = np.random.default_rng(seed)
    worker, priority = draw.integers(0, workers, graph.count), draw.integers(0, 3, graph.count)
    found = emulate(graph, devices, worker, priority)
    end = found.start + graph.nanoseconds[devices.kind[worker], np.arange(graph.count)]
    assert found.nanoseconds == end.max()
    urgent = np.lexsort([np.arange(graph.count), -priority]).tolist()
    by_end = sorted(range(graph.count), key=lambda node: (end[node], urgent.index(node)))
    there = arrivals(graph, devices, worker, by_end, end)
    for node in range(graph.count):
        ready = max((there[value, worker[node]] for value in graph.inputs[node].tolist()), default=0)
        assert found.start[node] >= ready
        now = ready
        for other in found.order.tolist():
            if (
                worker[other] == worker[node]
                and end[other] > ready
                and found.start[other] < found.start[node]
            ):
                assert found.start[other] <= now
                assert found.start[other] < ready or urgent.index(other) < urgent.index(node)
                now = end[other]
        assert found.start[node] == now


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_orders_are_topological_and_causes_are_reasons(seed: int, workers: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    draw = np.random.default_rng(seed)
    worker = draw.integers(0, workers, graph.count)[graph.leader]
    found = emulate(graph, devices, worker, draw.integers(0, 5, graph.count))
    place = np.argsort(found.order)
    assert (place[graph.edges[:, 0]] < place[graph.edges[:, 1]]).all()
    end = found.start + graph.nanoseconds[0]
    assert (found.start[graph.edges[:, 1]] >= end[graph.edges[:, 0]]).all()
    assert (found.start[graph.lasting.nonzero()[0]] == 0).all()
    for node, cause in enumerate(found.cause.tolist()):
        if cause < 0:
            assert found.start[node] == 0
        elif worker[cause] == worker[node] or found.start[node] == end[cause]:
            assert found.start[node] == end[cause]
            assert worker[cause] == worker[node] or node in graph.after[cause]
        else:
            assert any(node in graph.readers[value] for value in graph.values[cause].tolist())
