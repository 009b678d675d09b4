"""HEFT takes the slots that a search through all idle time finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement import heft as heft_file
from tofu.partitioner.methods.placement.graph import Devices, PlacementGraph
from tofu.partitioner.methods.placement.heft import SLOTS, heft
from tofu.partitioner.methods.placement.levels import levels

from .random_graphs import joined_devices, random_graph, training_like


def slow_heft(graph: PlacementGraph, devices: Devices) -> list[int]:
    """Place nodes by looking at the starts right after all that a worker runs."""
    worker: dict[int, int] = {}
    end: dict[int, int] = {}
    runs: list[list[tuple[int, int]]] = [[] for _ in range(devices.workers)]
    before = [set(graph.edges[graph.edges[:, 1] == node, 0].tolist()) for node in range(graph.count)]

    def start(node: int, at: int, time: int) -> int:
        ready = 0
        for other in before[node]:
            ready = max(ready, end.get(other, 0))
        for value in graph.inputs[node].tolist():
            maker = int(graph.maker[value])
            home = worker.get(int(graph.leader[maker]), at)
            message = devices.latency[home, at] + int(
                graph.sent_bytes[value] * devices.per_byte[home, at] + 0.5
            )
            ready = max(ready, end.get(maker, 0) + int(message if home != at else 0))
        if not time:
            return ready
        moments = [ready, *(stop for _, stop in runs[at] if stop > ready)]
        return min(m for m in moments if all(m + time <= a or b <= m for a, b in runs[at]))

    bottom = levels(graph, devices).bottom
    for node in sorted(range(graph.count), key=lambda node: (-bottom[node], node)):
        times = graph.nanoseconds[devices.kind, node].tolist()
        leader = int(graph.leader[node])
        if times[0] == 0 and not before[node]:
            continue
        choices = [worker[leader]] if leader in worker else range(devices.workers)
        chosen = min(choices, key=lambda at: start(node, at, times[at]) + times[at])
        end[node] = start(node, chosen, times[chosen]) + times[chosen]
        worker[leader] = chosen
        for value in graph.inputs[node].tolist():
            worker.setdefault(int(graph.leader[graph.maker[value]]), chosen)
        if times[chosen]:
            runs[chosen].append((end[node] - times[chosen], end[node]))
    return [worker.get(int(graph.leader[node]), 0) for node in range(graph.count)]


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_every_idle_slot_is_used(seed: int, workers: int) -> None:
    graph, devices = random_graph(seed, 16, 0.2, kinds=2), joined_devices(workers, kinds=2)
    assert heft(graph, devices).tolist() == slow_heft(graph, devices)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_tensors_stand_with_their_first_readers(seed: int, workers: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    assert heft(graph, devices).tolist() == slow_heft(graph, devices)


def test_the_latest_idle_slots_are_remembered() -> None:
    times, slots = heft_file.zeros(1), heft_file.zeros(1)
    table = heft_file.Timetable(*[times] * 8, slots, heft_file.zeros(SLOTS), heft_file.zeros(SLOTS))
    for number in range(SLOTS + 3):
        heft_file.add_slot(table, 0, int(slots[0]), 10 * number, 10 * number + 5)
    assert slots[0] == SLOTS
    assert np.array_equal(table.opens, 10 * np.arange(3, SLOTS + 3))
    heft_file.add_slot(table, 0, 0, 1, 2)
    assert table.opens[0] == 30
    heft_file.drop_slot(table, 0, 1)
    assert (table.opens[0], table.opens[1], slots[0]) == (30, 50, SLOTS - 1)
