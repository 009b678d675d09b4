"""When everything runs, if every worker takes the most urgent node that is ready.

A worker runs one node at a time. A node is ready when its inputs are there and the nodes that it comes after
have ended. Nodes that take no time, such as tensors, occupy no worker. A value is sent when it is made, once
to each worker that reads it. A message occupies two lanes: what its worker sends, and what the other one
receives. Both serve messages in the order in which these are made: those of more urgent nodes first, then by
the numbers of values and of their readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped, zeros
from .graph import Devices, Integers, PlacementGraph, Schedule
from .wires import Wires, wires


@dataclass(frozen=True, slots=True, eq=False)
class TimedSchedule(Schedule):
    """A schedule with the start of every node and its reason."""

    start: Integers
    """When each node starts, in nanoseconds: `[n]`."""

    cause: Integers
    """The node whose end each one waited for last, or whose message; -1 if it waited for none: `[n]`."""


class Emulation(NamedTuple):
    """The state of an emulation: nodes and workers by their numbers."""

    worker: Numbers
    """The worker of each node."""

    time: Numbers
    """The nanoseconds of each node on its worker."""

    rank: Numbers
    """The place of each node in the order of urgency."""

    by_rank: Numbers
    """The nodes, the most urgent one first."""

    latency: Numbers
    """The nanoseconds of a message without bytes, by pairs of workers."""

    per_byte: Numbers
    """The nanoseconds of each byte, by pairs of workers."""

    sent_bytes: Numbers
    """The bytes of each value."""

    start: Numbers
    """When each node starts."""

    ready: Numbers
    """When the last of what each node waits for is there, as far as this is known."""

    cause: Numbers
    """The node that made it so."""

    missing: Numbers
    """The number of inputs and other nodes that each node still waits for."""

    queue: Numbers
    """The ranks of waiting nodes: a heap for each worker."""

    queue_first: Numbers
    """Where the heap of each worker begins."""

    queued: Numbers
    """The number of nodes in each heap."""

    last: Numbers
    """The node that each worker ran last; -1 if there is none."""

    busy: Numbers
    """Whether each worker runs a node."""

    sends: Numbers
    """Until when the lane is occupied in which each worker sends."""

    receives: Numbers
    """Until when the lane is occupied in which each worker receives."""

    sent: Numbers
    """The value that reached each worker last."""

    arrival: Numbers
    """When that value is there."""


def emulate(graph: PlacementGraph, devices: Devices, worker: Integers, priority: Integers) -> TimedSchedule:
    """Return the schedule of a placement.

    `worker` and `priority` have a number for each node. A node of higher priority is more urgent, of several
    the one of the lowest number.
    """
    state = _emulation(graph, devices, worker, priority)
    nanoseconds = run(wires(graph, devices), state)
    start = np.asarray(state.start, np.int64)
    order = np.lexsort([np.arange(graph.count), start])
    return TimedSchedule(worker, order, nanoseconds, start, np.asarray(state.cause, np.int64))


def _emulation(graph: PlacementGraph, devices: Devices, worker: Integers, priority: Integers) -> Emulation:
    """Return the beginning of an emulation, when nothing has run."""
    by_rank = np.lexsort([np.arange(graph.count), -priority])
    rank = np.empty(graph.count, np.int64)
    rank[by_rank] = np.arange(graph.count)
    missing = np.diff(graph.inputs.firsts) + np.bincount(graph.after.entries, minlength=graph.count)
    held = np.bincount(worker, minlength=devices.workers)
    return Emulation(
        worker=looped(worker),
        time=looped(graph.nanoseconds[devices.kind[worker], np.arange(graph.count)]),
        rank=looped(rank),
        by_rank=looped(by_rank),
        latency=looped(devices.latency),
        per_byte=looped(devices.per_byte),
        sent_bytes=looped(graph.sent_bytes),
        start=zeros(graph.count),
        ready=zeros(graph.count),
        cause=filled(graph.count, -1),
        missing=looped(missing),
        queue=zeros(graph.count),
        queue_first=looped(np.cumsum(held) - held),
        queued=zeros(devices.workers),
        last=filled(devices.workers, -1),
        busy=zeros(devices.workers),
        sends=zeros(devices.workers),
        receives=zeros(devices.workers),
        sent=filled(devices.workers, -1),
        arrival=zeros(devices.workers),
    )


@compiled
def run(net: Wires, state: Emulation) -> int:
    """Run all nodes, and return when the last one ends.

    An event is a moment and a rank: of a node that ends, or, above the ranks, of one that is ready.
    """
    count = len(state.worker)
    events = [(0, 0)]
    events.pop()
    for rank in range(count):
        if state.missing[state.by_rank[rank]] == 0:
            heappush(events, (0, count + rank))
    touched = [0]
    now = 0
    while events:
        now = events[0][0]
        touched.clear()
        while events and events[0][0] == now:
            rank = heappop(events)[1]
            node = state.by_rank[rank % count]
            touched.append(state.worker[node])
            if rank < count:
                state.busy[state.worker[node]] = 0
                finish(net, state, events, node, now)
            elif state.time[node] == 0:
                state.start[node] = now
                finish(net, state, events, node, now)
            else:
                enqueue(state, state.worker[node], rank - count)
        for worker in touched:
            if state.busy[worker] == 0 and state.queued[worker] > 0:
                begin(state, events, worker, now)
    return now


@compiled
def begin(state: Emulation, events: list[tuple[int, int]], worker: int, now: int) -> None:
    """Let an idle worker take the most urgent node that waits for it."""
    rank = dequeue(state, worker)
    node = state.by_rank[rank]
    state.busy[worker] = 1
    state.start[node] = now
    if state.ready[node] < now:
        state.cause[node] = state.last[worker]
    state.last[worker] = node
    heappush(events, (now + state.time[node], rank))


@compiled
def finish(net: Wires, state: Emulation, events: list[tuple[int, int]], node: int, now: int) -> None:
    """Send what a node has made, and tell the nodes that wait for it."""
    home = state.worker[node]
    for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
        value = net.values[number]
        for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
            reader = net.readers[place]
            target = state.worker[reader]
            if target != home and state.sent[target] != value:
                state.sent[target] = value
                state.arrival[target] = send(state, home, target, value, now)
            release(state, events, reader, node, now if target == home else state.arrival[target])
    for place in range(net.after_firsts[node], net.after_firsts[node + 1]):
        release(state, events, net.after[place], node, now)


@compiled
def send(state: Emulation, home: int, target: int, value: int, now: int) -> int:
    """Occupy the lanes of a message, and return when it is there."""
    pair = home * len(state.sends) + target
    moment = max(now, state.sends[home], state.receives[target])
    moment += state.latency[pair] + int(state.sent_bytes[value] * state.per_byte[pair] + 0.5)
    state.sends[home] = moment
    state.receives[target] = moment
    return int(moment)


@compiled
def release(state: Emulation, events: list[tuple[int, int]], node: int, other: int, moment: int) -> None:
    """Note that something that a node waits for comes from another one and is there at a moment."""
    if moment > state.ready[node] or state.cause[node] < 0:
        state.ready[node] = moment
        state.cause[node] = other
    state.missing[node] -= 1
    if state.missing[node] == 0:
        heappush(events, (state.ready[node], len(state.worker) + state.rank[node]))


@compiled
def enqueue(state: Emulation, worker: int, rank: int) -> None:
    """Add a rank to the heap of a worker."""
    first, place = state.queue_first[worker], state.queued[worker]
    state.queued[worker] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if state.queue[first + parent] <= rank:
            break
        state.queue[first + place] = state.queue[first + parent]
        place = parent
    state.queue[first + place] = rank


@compiled
def dequeue(state: Emulation, worker: int) -> int:
    """Take the least rank from the heap of a worker."""
    first, count = state.queue_first[worker], state.queued[worker] - 1
    state.queued[worker] = count
    least, rank, place = state.queue[first], state.queue[first + count], 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and state.queue[first + child + 1] < state.queue[first + child]:
            child += 1
        if state.queue[first + child] >= rank:
            break
        state.queue[first + place] = state.queue[first + child]
        place = child
    state.queue[first + place] = rank
    return int(least)
