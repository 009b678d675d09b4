"""ParDNN's own two ways to keep within memory (sections 3.2.1 and 3.2.2), to compare `mend` with them.

Both count memory exactly, by lifetimes in a fixed order, where the paper estimates it (its Eq. 2 frees inputs
while their reader runs, forgets outputs that wait for readers elsewhere, and has no arenas). Neither promises
that a placement fits. In the paper's Heuristic-I the potential of a node leaves out the copies that its move
makes. Here potentials are the paper's, but each move is followed by exact counts. The paper's stop of
Heuristic-II, shares that add up to 1 for all workers, holds only if all are equal; here moves end if the
largest peak falls no more. Its second strategy, which balances primary clusters before mapping, is not here.
"""

from __future__ import annotations

from heapq import heapify, heappop

import numpy as np
import numpy.typing as npt

from ....support.compiled import plain
from ....support.integers import Integers
from ..placement.graph import PlacementDevices, PlacementGraph
from ..placement.live_tree import bytes_at, peak, peak_tick
from ..placement.movable import MovablePlacement, movable
from ..placement.moves import move
from ..placement.stays import kept_until, stays, ticks_of


def heuristic_one(
    graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers
) -> Integers:
    """Move nodes from workers that exceed their memory, each at most once, and return the workers of all.

    Two queues hold the nodes of the fullest worker: by cost for each byte of their potential, and by cost if
    their potential is at least the excess. Of the two first ones, the cheaper one moves to the worker with
    most room if that then fits; else it stays for good.
    """
    assert devices.memory_bytes is not None
    limits = devices.memory_bytes.tolist()
    state = movable(graph, devices, order, worker)
    settled = np.zeros(graph.count, bool)
    while True:
        excess = [_peak(state, each) - limit for each, limit in enumerate(limits)]
        fullest = max(range(len(limits)), key=lambda each: (excess[each], -each))
        before = int(settled.sum())
        if excess[fullest] > 0:
            _relieve(graph, devices, order, state, fullest, settled)
        if int(settled.sum()) == before:
            return np.array(plain(state.worker), np.int64)


def _relieve(
    graph: PlacementGraph,
    devices: PlacementDevices,
    order: Integers,
    state: MovablePlacement,
    fullest: int,
    settled: npt.NDArray[np.bool_],
) -> None:
    """Move nodes from a worker until it fits at the tick at which it holds most, or none is left."""
    assert devices.memory_bytes is not None
    limits = devices.memory_bytes.tolist()
    tick = peak_tick(state.highest, state.leaves, fullest)
    worker = np.array(plain(state.worker), np.int64)
    potential = potentials(graph, order, worker, fullest, tick)
    costs = move_costs(graph, devices, worker)
    known = np.flatnonzero((potential > 0) & ~settled).tolist()
    by_ratio = [(costs[node] / potential[node], node) for node in known]
    by_cost = [(costs[node], node) for node in known]
    heapify(by_ratio)
    heapify(by_cost)
    while by_ratio:
        excess = bytes_at(state.highest, state.added, state.leaves, fullest, tick) - limits[fullest]
        if excess <= 0:
            return
        while by_cost and (potential[by_cost[0][1]] < excess or settled[by_cost[0][1]]):
            heappop(by_cost)
        if settled[by_ratio[0][1]]:
            heappop(by_ratio)
            continue
        node = by_ratio[0][1]
        if by_cost and by_cost[0] < (costs[node], node):
            node = by_cost[0][1]
        settled[node] = True
        rooms = [limit - _peak(state, each) for each, limit in enumerate(limits)]
        target = max(
            (each for each in range(len(limits)) if each != fullest),
            key=lambda each: (rooms[each], -each),
            default=fullest,
        )
        _move_group(state, node, target)
        if _peak(state, target) > limits[target]:
            _move_group(state, node, fullest)


def potentials(graph: PlacementGraph, order: Integers, worker: Integers, at: int, tick: int) -> Integers:
    """Return the potential of each leader: the bytes on a worker at a tick that it and its followers keep.

    These are what they make, and what they are the last to read there (the paper's M_pot).
    """
    ticks = ticks_of(order)
    found = stays(graph, ticks, worker)
    until = kept_until(graph, ticks, worker, found)
    home = worker[graph.maker] == at
    live = home & (graph.lasting | ((ticks[graph.maker] <= tick) & (tick <= until)))
    result = np.zeros(graph.count, np.int64)
    np.add.at(result, graph.leader[graph.maker[live]], graph.stored_bytes[live])
    copied = ~home[found.value]
    there = (found.worker == at) & (found.first <= tick) & (tick <= found.last)
    ends = there & (copied | (until[found.value] == found.last)) & ~(graph.lasting[found.value] & ~copied)
    sizes = np.where(copied, graph.sent_bytes[found.value], graph.stored_bytes[found.value])
    np.add.at(result, graph.leader[order[found.last[ends]]], sizes[ends])
    return result


def move_costs(graph: PlacementGraph, devices: PlacementDevices, worker: Integers) -> Integers:
    """Return for each leader the time of its group, and of messages to neighbours that it would leave."""
    value, reader = graph.readers.row_of_entries, graph.readers.entries
    message = np.rint(devices.mean_latency + graph.sent_bytes * devices.mean_per_byte).astype(np.int64)
    result = np.zeros(graph.count, np.int64)
    np.add.at(result, graph.leader, graph.nanoseconds[devices.kind[worker], np.arange(graph.count)])
    maker = graph.leader[graph.maker[value]]
    near = (worker[maker] == worker[reader]) & (maker != graph.leader[reader])
    pairs = np.unique(np.stack([value[near], graph.leader[reader[near]]], axis=1), axis=0)
    np.add.at(result, pairs[:, 1], message[pairs[:, 0]])
    left = np.unique(value[near])
    np.add.at(result, graph.leader[graph.maker[left]], message[left])
    return result


def heuristic_two(
    graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers
) -> Integers:
    """Spread lasting values, and return the workers of all nodes.

    The groups that hold most move first, from the worker that is fullest for its memory to the one that is
    least full, as long as the fullest falls and no other one becomes as full.
    """
    assert devices.memory_bytes is not None
    limits = devices.memory_bytes.tolist()
    state = movable(graph, devices, order, worker)
    held = np.zeros(graph.count, np.int64)
    np.add.at(held, graph.leader[graph.maker[graph.lasting]], graph.stored_bytes[graph.lasting])
    largest = [node for node in np.argsort(-held, kind="stable").tolist() if held[node]]
    while True:
        shares = [_peak(state, each) / limit for each, limit in enumerate(limits)]
        fullest, least = int(np.argmax(shares)), int(np.argmin(shares))
        for node in largest:
            if fullest == least or state.worker[node] != fullest:
                continue
            _move_group(state, node, least)
            after = [_peak(state, each) / limit for each, limit in enumerate(limits)]
            falls = after[fullest] < shares[fullest]
            others = zip(after, shares, strict=True)
            if falls and all(new < shares[fullest] or new <= old for new, old in others):
                break
            _move_group(state, node, fullest)
        else:
            return np.array(plain(state.worker), np.int64)


def _peak(state: MovablePlacement, worker: int) -> int:
    return int(peak(state.highest, state.leaves, worker))


def _move_group(state: MovablePlacement, leader: int, target: int) -> None:
    """Move a leader and its followers."""
    for entry in range(state.group_firsts[leader], state.group_firsts[leader + 1]):
        move(state, state.groups[entry], target)
