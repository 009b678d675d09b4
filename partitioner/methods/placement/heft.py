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
from .graph import Devices, Integers, PlacementGraph
from .levels import levels
from .wires import Wires, wires

SLOTS = 32
"""The idle slots that each worker remembers."""


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

    free: Numbers
    """Until when each worker is occupied at last."""

    slots: Numbers
    """The number of idle slots that each worker remembers."""

    opens: Numbers
    """When idle slots begin: `SLOTS` of each worker, in the order of time."""

    closes: Numbers
    """When idle slots end."""


def heft(graph: PlacementGraph, devices: Devices) -> Integers:
    """Return the worker of every node, as if messages did not disturb each other."""
    return _heft(graph, devices, lanes=False)


def heft_with_lanes(graph: PlacementGraph, devices: Devices) -> Integers:
    """Return the worker of every node, if messages wait for each other."""
    return _heft(graph, devices, lanes=True)


def _heft(graph: PlacementGraph, devices: Devices, lanes: bool) -> Integers:
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
        free=zeros(workers),
        slots=zeros(workers),
        opens=zeros(workers * SLOTS),
        closes=zeros(workers * SLOTS),
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
    for worker in range(len(table.free)):
        time = duration(table, node, worker)
        end = slot_start(table, worker, ready_at(net, table, node, worker, False), time)[0] + time
        if least < 0 or end < least:
            best, least = worker, end
    return int(best)


@compiled
def duration(table: Timetable, node: int, worker: int) -> int:
    """Return the time of a node on a worker."""
    return int(table.times[table.kind[worker] * len(table.end) + node])


@compiled
def ready_at(net: Wires, table: Timetable, node: int, worker: int, sent: bool) -> int:
    """Return when all that a node waits for is there on a worker; note the messages if they are sent."""
    moment, received = 0, table.receives[worker]
    for place in range(net.before_firsts[node], net.before_firsts[node + 1]):
        moment = max(moment, table.end[net.before[place]])
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        value = net.inputs[place]
        maker = net.maker[value]
        home, there = table.worker[net.leader[maker]], table.end[maker]
        if home not in (worker, -1):
            pair = home * len(table.free) + worker
            time = table.latency[pair] + int(table.sent_bytes[value] * table.per_byte[pair] + 0.5)
            if not table.lanes:
                there += time
            elif table.arrival[value * len(table.free) + worker] >= 0:
                there = table.arrival[value * len(table.free) + worker]
            else:
                there = received = max(there, table.sends[home], received) + time
                if sent:
                    table.sends[home] = table.receives[worker] = there
                    table.arrival[value * len(table.free) + worker] = there
        moment = max(moment, there)
    return int(moment)


@compiled
def slot_start(table: Timetable, worker: int, moment: int, time: int) -> tuple[int, int]:
    """Return from when a worker is first idle for a time, and in which slot; -1 after the last one."""
    if time == 0:
        return moment, -1
    for slot in range(worker * SLOTS, worker * SLOTS + table.slots[worker]):
        start = max(moment, table.opens[slot])
        if start + time <= table.closes[slot]:
            return start, slot
    return max(moment, table.free[worker]), -1


@compiled
def put_node(net: Wires, table: Timetable, node: int, worker: int) -> None:
    """Place a node, with its leader and the tensors that it reads, and occupy its slot."""
    time = duration(table, node, worker)
    start, slot = slot_start(table, worker, ready_at(net, table, node, worker, True), time)
    table.worker[net.leader[node]] = worker
    table.end[node] = start + time
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        leader = net.leader[net.maker[net.inputs[place]]]
        if table.worker[leader] < 0:
            table.worker[leader] = worker
    if time == 0:
        return
    if slot < 0:
        add_slot(table, worker, table.slots[worker], table.free[worker], start)
        table.free[worker] = start + time
    else:
        place, closes = slot - worker * SLOTS, table.closes[slot]
        table.closes[slot] = start
        if table.opens[slot] == start:
            drop_slot(table, worker, place)
            place -= 1
        add_slot(table, worker, place + 1, start + time, closes)


@compiled
def drop_slot(table: Timetable, worker: int, place: int) -> None:
    """Forget an idle slot of a worker."""
    first = worker * SLOTS
    table.slots[worker] -= 1
    for slot in range(first + place, first + table.slots[worker]):
        table.opens[slot] = table.opens[slot + 1]
        table.closes[slot] = table.closes[slot + 1]


@compiled
def add_slot(table: Timetable, worker: int, place: int, opens: int, closes: int) -> None:
    """Remember an idle slot of a worker, and forget the earliest one if there are too many."""
    if opens == closes:
        return
    if table.slots[worker] == SLOTS:
        if place == 0:
            return
        drop_slot(table, worker, 0)
        place -= 1
    first = worker * SLOTS
    for slot in range(first + table.slots[worker], first + place, -1):
        table.opens[slot] = table.opens[slot - 1]
        table.closes[slot] = table.closes[slot - 1]
    table.opens[first + place], table.closes[first + place] = opens, closes
    table.slots[worker] += 1
