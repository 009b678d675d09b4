"""The time line of a placement on a machine, by the simulator that all plans share.

A node is one job. A message is one job: a value goes to each worker that reads it, once, as soon as it is
made and the links are free. Workers keep the order of the placement. Jobs are numbered in that order, a
message just before its first reader, so of messages that are ready together the one that is needed first goes
first. If one thread serves all that a device does, its messages keep the order as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....machines.machine import Machine
from ....programs.program import Lane
from ....simulator.jobs import Jobs, run
from ....simulator.ways import Ways
from ....support.gc_pause import gc_paused
from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph
from .stays import stays, ticks_of


@dataclass(frozen=True, slots=True, eq=False)
class PlacementTimes:
    """When nodes run on a machine."""

    start: Integers
    """The nanosecond at which each node starts: `[n]`."""

    nanoseconds: int
    """The time until all have ended."""


@gc_paused()
def simulate_placement(
    graph: PlacementGraph, devices: PlacementDevices, machine: Machine, order: Integers, worker: Integers
) -> PlacementTimes:
    """Simulate one iteration of a placement whose nodes run in an order, which respects `graph.edges`.

    `devices` are those of the machine, see `devices_of`.
    """
    tick = ticks_of(order)
    found = stays(graph, tick, worker)
    home = worker[graph.maker[found.value]]
    copied = found.worker != home
    value, source, target = found.value[copied], home[copied], found.worker[copied]
    first = found.first[copied]
    places = _Places.of(tick, first)
    ways = Ways(machine, devices.workers)
    numbers = [ways.number(a, b) for a, b in zip(source.tolist(), target.tolist(), strict=True)]
    latency, per_byte = devices.latency[source, target], devices.per_byte[source, target]
    nanoseconds = np.zeros(graph.count + len(value), np.int64)
    nanoseconds[places.nodes] = graph.nanoseconds[devices.kind[worker], np.arange(graph.count)]
    nanoseconds[places.messages] = latency + np.rint(graph.sent_bytes[value] * per_byte).astype(np.int64)
    way = np.full(len(nanoseconds), -1)  # that of jobs without lanes comes last
    way[places.nodes] = ways.computing[worker]
    way[places.messages] = np.array(numbers, np.int64)
    lanes = [*ways.lanes, ()]
    runner = np.full(len(nanoseconds), -1)
    runner[places.nodes] = ways.runners[worker, Lane.COMPUTE]
    in_turn = np.array([kind.in_turn for kind in ways.kinds])[target]
    runner[places.messages] = np.where(in_turn, ways.runners[target, Lane.TRANSFER], -1)
    jobs = Jobs(
        nanoseconds.tolist(),
        [lanes[each] for each in way.tolist()],
        ways.lane_names,
        _needs(graph, worker, places, value, target),
        _turns(runner),
    )
    start = np.array(run(jobs).start, np.int64)
    return PlacementTimes(start[places.nodes], int((start + nanoseconds).max(initial=0)))


@dataclass(frozen=True, slots=True)
class _Places:
    """The numbers of jobs."""

    nodes: Integers
    messages: Integers

    @classmethod
    def of(cls, tick: Integers, first: Integers) -> _Places:
        """Number nodes by tick, and messages before their first readers, whose ticks are given."""
        sequence = np.argsort(first, kind="stable")
        rank = np.empty(len(first), np.int64)
        rank[sequence] = np.arange(len(first))
        earlier = np.cumsum(np.bincount(first, minlength=len(tick)))
        return cls(tick + earlier[tick], first + rank)


def _needs(
    graph: PlacementGraph, worker: Integers, places: _Places, value: Integers, target: Integers
) -> Integers:
    """Return which job needs another one: messages their makers, readers messages or makers."""
    read, reader = graph.readers.row_of_entries, graph.readers.entries
    here = worker[graph.maker[read]] == worker[reader]
    width = int(worker.max(initial=0)) + 1
    message = np.searchsorted(value * width + target, (read * width + worker[reader])[~here])
    pairs = (
        (places.nodes[graph.maker[value]], places.messages),
        (places.nodes[graph.maker[read[here]]], places.nodes[reader[here]]),
        (places.messages[message], places.nodes[reader[~here]]),
        (places.nodes[graph.after.row_of_entries], places.nodes[graph.after.entries]),
    )
    return np.concatenate([np.stack(pair, axis=1) for pair in pairs])


def _turns(runner: Integers) -> Integers:
    """Return the pairs of jobs that one runner runs one after the other; -1 stands for none."""
    order = np.argsort(runner, kind="stable")
    earlier, later = order[:-1], order[1:]
    same = (runner[earlier] == runner[later]) & (runner[earlier] >= 0)
    return np.stack([earlier[same], later[same]], axis=1)
