"""HEFT: the nodes with the longest paths after them first, each on the worker on which it ends first.

Topcuoglu, Hariri, Wu: *Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing*
(TPDS 2002).

Nodes are taken by falling bottom level, ties by number. A node starts when its inputs are there, in the first
idle slot of a worker that is long enough, or after all else. Of several workers it takes the one on which it
ends first, ties by number. A value is sent once to each worker. Messages do not disturb each other in the
original; `heft_with_lanes` lets each wait for those that its two workers have sent and received before.

A tensor stands where the first of its readers, or of the nodes that follow it, is placed. Each worker
remembers its `SLOTS` latest idle slots only: then the time is linear in the graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped, zeros
from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph
from .levels import levels
from .wires import Wires, wires

SLOTS = 32
"""The idle slots that each worker remembers."""


class Gaps(NamedTuple):
    """The idle slots of workers: the latest `SLOTS` of each, in the order of time."""

    counts: Numbers
    """The number of idle slots that each worker remembers."""

    opens: Numbers
    """When idle slots begin."""

    closes: Numbers
    """When idle slots end."""


class Timetable(NamedTuple):
    """Where nodes are, when they end, and when workers are idle."""

    worker: Numbers
    """The worker of each leader; -1 if it has none yet."""

    end: Numbers
    """When each node ends."""

    kind: Numbers
    """The kind of each worker."""

    times: Numbers
    """The nanoseconds of each node, by kind of device."""

    latency: Numbers
    """The nanoseconds of a message without bytes, by pairs of workers."""

    per_byte: Numbers
    """The nanoseconds of each byte, by pairs of workers."""

    sent_bytes: Numbers
    """The bytes of each value."""

    lanes: bool
    """Whether messages wait for each other."""

    sends: Numbers
    """Until when the lane is occupied in which each worker sends."""

    receives: Numbers
    """Until when the lane is occupied in which each worker receives."""

    arrival: Numbers
    """When each value is on each worker, by pairs; -1 if it was not sent there. Empty without lanes."""

    ready: Numbers
    """When all that the node looked at last waits for is there, by worker."""

    received: Numbers
    """Until when each worker then receives."""

    free: Numbers
    """Until when each worker is occupied at last."""

    gaps: Gaps
    """When workers are idle before that."""


def heft(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node, as if messages did not disturb each other."""
    return _heft(graph, devices, lanes=False)


def heft_with_lanes(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node, if messages wait for each other."""
    return _heft(graph, devices, lanes=True)


def _heft(graph: PlacementGraph, devices: PlacementDevices, lanes: bool) -> Integers:
    """Return the worker of every node."""
    order = np.lexsort([np.arange(graph.count), -levels(graph, devices).bottom])
    workers = devices.workers
    table = Timetable(
        worker=filled(graph.count, -1),
        end=zeros(graph.count),
        kind=looped(devices.kind),
        times=looped(graph.nanoseconds),
        latency=looped(devices.latency),
        per_byte=looped(devices.per_byte),
        sent_bytes=looped(graph.sent_bytes),
        lanes=lanes,
        sends=zeros(workers),
        receives=zeros(workers),
        arrival=filled(workers * len(graph.maker) if lanes else 0, -1),
        ready=zeros(workers),
        received=zeros(workers),
        free=zeros(workers),
        gaps=Gaps(zeros(workers), zeros(workers * SLOTS), zeros(workers * SLOTS)),
    )
    place_all(wires(graph, devices), table, looped(order))
    return np.maximum(np.asarray(table.worker, np.int64), 0)[graph.leader]


@compiled
def place_all(net: Wires, table: Timetable, order: Numbers) -> None:
    """Place nodes in an order; tensors wait for their first reader."""
    for place in range(len(order)):
        node = order[place]
        if not is_source(net, table, node):
            put_node(net, table, node, first_end(net, table, node))


@compiled
def is_source(net: Wires, table: Timetable, node: int) -> bool:
    """Return whether a node takes no time on the first kind of device, and waits for nothing."""
    before = net.before_firsts[node + 1] - net.before_firsts[node]
    inputs = net.input_firsts[node + 1] - net.input_firsts[node]
    return bool(table.times[node] == 0 and before == 0 and inputs == 0)


@compiled
def first_end(net: Wires, table: Timetable, node: int) -> int:
    """Return the worker on which a node ends first, or that of its leader if this has one."""
    best, least = table.worker[net.leader[node]], -1
    if best >= 0:
        return int(best)
    reach(net, table, node, 0, len(table.free), False)
    for worker in range(len(table.free)):
        time = table.times[table.kind[worker] * len(table.end) + node]
        end = slot_start(table.gaps, table.free, worker, table.ready[worker], time)[0] + time
        if least < 0 or end < least:
            best, least = worker, end
    return int(best)


@compiled
def reach(net: Wires, table: Timetable, node: int, first: int, last: int, sent: bool) -> None:
    """Write when all that a node waits for is there on workers from `first` to `last`.

    If messages are sent, note their lanes and arrivals.
    """
    earliest, count = 0, len(table.free)
    for place in range(net.before_firsts[node], net.before_firsts[node + 1]):
        earliest = max(earliest, table.end[net.before[place]])
    for worker in range(first, last):
        table.ready[worker], table.received[worker] = earliest, table.receives[worker]
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        value = net.inputs[place]
        maker = net.maker[value]
        home = table.worker[net.leader[maker]]
        for worker in range(first, last):
            there = table.end[maker]
            if home not in (worker, -1):
                pair = home * count + worker
                time = table.latency[pair] + int(table.sent_bytes[value] * table.per_byte[pair] + 0.5)
                if not table.lanes:
                    there += time
                elif table.arrival[value * count + worker] >= 0:
                    there = table.arrival[value * count + worker]
                else:
                    there = max(there, table.sends[home], table.received[worker]) + time
                    table.received[worker] = there
                    if sent:
                        table.sends[home] = table.receives[worker] = there
                        table.arrival[value * count + worker] = there
            table.ready[worker] = max(table.ready[worker], there)


@compiled
def slot_start(gaps: Gaps, free: Numbers, worker: int, moment: int, time: int) -> tuple[int, int]:
    """Return from when a worker is first idle for a time, and in which slot; -1 after the last one."""
    if time == 0:
        return moment, -1
    for slot in range(worker * SLOTS, worker * SLOTS + gaps.counts[worker]):
        start = max(moment, gaps.opens[slot])
        if start + time <= gaps.closes[slot]:
            return start, slot
    return max(moment, free[worker]), -1


@compiled
def put_node(net: Wires, table: Timetable, node: int, worker: int) -> None:
    """Place a node, with its leader and the tensors that it reads, and occupy its slot."""
    time = table.times[table.kind[worker] * len(table.end) + node]
    reach(net, table, node, worker, worker + 1, True)
    start, slot = slot_start(table.gaps, table.free, worker, table.ready[worker], time)
    table.worker[net.leader[node]] = worker
    table.end[node] = start + time
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        leader = net.leader[net.maker[net.inputs[place]]]
        if table.worker[leader] < 0:
            table.worker[leader] = worker
    if time > 0 and slot < 0:
        add_slot(table.gaps, worker, table.gaps.counts[worker], table.free[worker], start)
        table.free[worker] = start + time
    elif time > 0:
        fill_slot(table.gaps, worker, slot, start, start + time)


@compiled
def fill_slot(gaps: Gaps, worker: int, slot: int, start: int, end: int) -> None:
    """Occupy a part of an idle slot."""
    place, closes = slot - worker * SLOTS, gaps.closes[slot]
    gaps.closes[slot] = start
    if gaps.opens[slot] == start:
        drop_slot(gaps, worker, place)
        place -= 1
    add_slot(gaps, worker, place + 1, end, closes)


@compiled
def drop_slot(gaps: Gaps, worker: int, place: int) -> None:
    """Forget an idle slot of a worker."""
    first = worker * SLOTS
    gaps.counts[worker] -= 1
    for slot in range(first + place, first + gaps.counts[worker]):
        gaps.opens[slot] = gaps.opens[slot + 1]
        gaps.closes[slot] = gaps.closes[slot + 1]


@compiled
def add_slot(gaps: Gaps, worker: int, place: int, opens: int, closes: int) -> None:
    """Remember an idle slot of a worker, and forget the earliest one if there are too many."""
    if opens == closes:
        return
    if gaps.counts[worker] == SLOTS:
        if place == 0:
            return
        drop_slot(gaps, worker, 0)
        place -= 1
    first = worker * SLOTS
    for slot in range(first + gaps.counts[worker], first + place, -1):
        gaps.opens[slot] = gaps.opens[slot - 1]
        gaps.closes[slot] = gaps.closes[slot - 1]
    gaps.opens[first + place], gaps.closes[first + place] = opens, closes
    gaps.counts[worker] += 1
