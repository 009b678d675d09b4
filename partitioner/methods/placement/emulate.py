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
from ....support.integers import Integers
from .graph import NodeSchedule, PlacementDevices, PlacementGraph
from .wires import Wires, wires


@dataclass(frozen=True, slots=True, eq=False)
class TimedSchedule(NodeSchedule):
    """A schedule with the start of every node and its reason."""

    start: Integers
    """When each node starts, in nanoseconds: `[n]`."""

    cause: Integers
    """The node whose end each one waited for last, or whose message; -1 if it waited for none: `[n]`."""


class Queues(NamedTuple):
    """A heap for each worker, of the ranks of nodes that wait for it."""

    ranks: Numbers
    """The ranks of all heaps."""

    firsts: Numbers
    """Where the heap of each worker begins."""

    counts: Numbers
    """The number of nodes in each heap."""


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

    queues: Queues
    """The nodes that are ready and wait for their workers."""

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


def emulate(
    graph: PlacementGraph, devices: PlacementDevices, worker: Integers, priority: Integers
) -> TimedSchedule:
    """Return the schedule of a placement.

    `worker` and `priority` have a number for each node. A node of higher priority is more urgent, of several
    the one of the lowest number.
    """
    state = _emulation(graph, devices, worker, priority)
    nanoseconds = run(wires(graph, devices), state)
    start = np.asarray(state.start, np.int64)
    order = np.lexsort([np.arange(graph.count), start])
    return TimedSchedule(worker, order, nanoseconds, start, np.asarray(state.cause, np.int64))


def _emulation(
    graph: PlacementGraph, devices: PlacementDevices, worker: Integers, priority: Integers
) -> Emulation:
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
        queues=Queues(zeros(graph.count), looped(np.cumsum(held) - held), zeros(devices.workers)),
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
    events = [(0, 0)] * 0
    for rank in range(count):
        if state.missing[state.by_rank[rank]] == 0:
            heappush(events, (0, count + rank))
    now = 0
    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            rank = heappop(events)[1]
            node = state.by_rank[rank % count]
            if rank < count:
                state.busy[state.worker[node]] = 0
                finish(net, state, events, node, now)
            elif state.time[node] == 0:
                state.start[node] = now
                finish(net, state, events, node, now)
            else:
                enqueue(state.queues, state.worker[node], rank - count)
        for worker in range(len(state.busy)):
            if state.busy[worker] == 0 and state.queues.counts[worker] > 0:
                begin(state, events, worker, now)
    return now


@compiled
def begin(state: Emulation, events: list[tuple[int, int]], worker: int, now: int) -> None:
    """Let an idle worker take the most urgent node that waits for it."""
    rank = dequeue(state.queues, worker)
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
    home, ready, cause, missing = state.worker[node], state.ready, state.cause, state.missing
    for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
        value = net.values[number]
        for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
            reader = net.readers[place]
            target = state.worker[reader]
            moment = now
            if target != home:
                if state.sent[target] != value:
                    state.sent[target] = value
                    state.arrival[target] = send(state, home, target, value, now)
                moment = state.arrival[target]
            if moment > ready[reader] or cause[reader] < 0:
                ready[reader], cause[reader] = moment, node
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(events, (ready[reader], len(ready) + state.rank[reader]))
    for place in range(net.after_firsts[node], net.after_firsts[node + 1]):
        other = net.after[place]
        if now > ready[other] or cause[other] < 0:
            ready[other], cause[other] = now, node
        missing[other] -= 1
        if missing[other] == 0:
            heappush(events, (ready[other], len(ready) + state.rank[other]))


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
def enqueue(queues: Queues, worker: int, rank: int) -> None:
    """Add a rank to the heap of a worker."""
    ranks, first, place = queues.ranks, queues.firsts[worker], queues.counts[worker]
    queues.counts[worker] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if ranks[first + parent] <= rank:
            break
        ranks[first + place] = ranks[first + parent]
        place = parent
    ranks[first + place] = rank


@compiled
def dequeue(queues: Queues, worker: int) -> int:
    """Take the least rank from the heap of a worker."""
    ranks, first, count = queues.ranks, queues.firsts[worker], queues.counts[worker] - 1
    queues.counts[worker] = count
    least, rank, place = ranks[first], ranks[first + count], 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and ranks[first + child + 1] < ranks[first + child]:
            child += 1
        if ranks[first + child] >= rank:
            break
        ranks[first + place] = ranks[first + child]
        place = child
    ranks[first + place] = rank
    return int(least)
