"""HEFT takes the slots that a search through all idle time finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.heft import (
    SLOTS,
    Gaps,
    add_slot,
    fill_slot,
    heft,
    heft_with_lanes,
)
from tofu.partitioner.methods.placement.levels import levels
from tofu.support.compiled import zeros

from .random_graphs import joined_devices, random_graph, training_like


def slow_heft(graph: PlacementGraph, devices: PlacementDevices, lanes: bool) -> list[int]:
    """Place nodes by looking at the starts right after all that a worker runs."""
    worker: dict[int, int] = {}
    end: dict[int, int] = {}
    runs: list[list[tuple[int, int]]] = [[] for _ in range(devices.workers)]
    before = [set(graph.edges[graph.edges[:, 1] == node, 0].tolist()) for node in range(graph.count)]

    sends, receives = ([0] * devices.workers for _ in range(2))
    there: dict[tuple[int, int], int] = {}

    def message(value: int, home: int, at: int) -> int:
        """Send a value, if it was not sent there, and return when it is there."""
        nonlocal there
        maker = int(graph.maker[value])
        cost = devices.latency[home, at] + int(graph.sent_bytes[value] * devices.per_byte[home, at] + 0.5)
        if not lanes:
            return end.get(maker, 0) + int(cost)
        if (value, at) not in there:
            moment = max(end.get(maker, 0), sends[home], receives[at]) + int(cost)
            there[value, at] = sends[home] = receives[at] = moment
        return there[value, at]

    def start(node: int, at: int, time: int) -> int:
        ready = 0
        for other in before[node]:
            ready = max(ready, end.get(other, 0))
        for value in graph.inputs[node].tolist():
            maker = int(graph.maker[value])
            home = worker.get(int(graph.leader[maker]), at)
            ready = max(ready, message(value, home, at) if home != at else end.get(maker, 0))
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
        trials = {}
        for at in choices:
            kept = there.copy(), sends.copy(), receives.copy()
            trials[at] = start(node, at, times[at]) + times[at]
            there, sends[:], receives[:] = kept
        chosen = min(trials, key=trials.__getitem__)
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
    assert heft(graph, devices).tolist() == slow_heft(graph, devices, False)
    assert heft_with_lanes(graph, devices).tolist() == slow_heft(graph, devices, True)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_tensors_stand_with_their_first_readers(seed: int, workers: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    assert heft(graph, devices).tolist() == slow_heft(graph, devices, False)
    assert heft_with_lanes(graph, devices).tolist() == slow_heft(graph, devices, True)


def test_the_latest_idle_slots_are_remembered() -> None:
    gaps = Gaps(zeros(1), zeros(SLOTS), zeros(SLOTS))
    for number in range(SLOTS + 3):
        add_slot(gaps, 0, int(gaps.counts[0]), 10 * number, 10 * number + 5)
    assert gaps.counts[0] == SLOTS
    assert list(gaps.opens) == list(range(30, 10 * SLOTS + 30, 10))
    add_slot(gaps, 0, 0, 1, 2)
    assert gaps.opens[0] == 30
    fill_slot(gaps, 0, 1, 40, 43)
    assert (gaps.counts[0], gaps.opens[1], gaps.closes[1]) == (SLOTS, 43, 45)
    fill_slot(gaps, 0, 1, 43, 45)
    assert (gaps.counts[0], gaps.opens[1]) == (SLOTS - 1, 50)
    fill_slot(gaps, 0, 1, 51, 53)
    assert list(zip(gaps.opens, gaps.closes, strict=True))[1:3] == [(50, 51), (53, 55)]
