"""Better placements by moves along the path that decides when an emulated schedule ends.

The *deciding path* leads back from the node that ends last, from each node to its cause. Nodes in a row on
one worker form a *run* of it. A move gives a piece of a run another worker: a whole run, one of its halves,
one of their halves, and so on. Moves that save the longest waits for messages come first. Then nodes of the
path change places with nodes that run on another worker meanwhile, and at last nodes off the path move. A
move is kept if the schedule ends earlier, and the search goes on. Leaders move with their followers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....support.integers import Integers
from .emulate import TimedSchedule
from .graph import PlacementDevices, PlacementGraph
from .priorities import PRIORITIES, Orders, emulated, no_orders

Fits = Callable[[Integers], bool]


def improve(
    graph: PlacementGraph,
    devices: PlacementDevices,
    worker: Integers,
    fits: Fits,
    budget: int,
    orders: Orders = no_orders,
) -> TimedSchedule:
    """Return the best schedule found from a placement on with a number of emulations.

    A placement is only left for one of which `fits` says that it fits the memory of workers.
    """
    best = emulated(graph, devices, worker, orders)[1]
    each = PRIORITIES + len(orders(worker))
    spent, better = each, True
    while better:
        better = False
        for moved in moves(graph, devices, best):
            if spent + each > budget:
                return best
            tried = emulated(graph, devices, moved, orders)[1]
            spent += each
            if tried.nanoseconds < best.nanoseconds and fits(moved):
                best, better = tried, True
                break
    return best


def moves(graph: PlacementGraph, devices: PlacementDevices, schedule: TimedSchedule) -> Iterator[Integers]:
    """Yield the placements that one move gives, the most promising first."""
    times = graph.nanoseconds[devices.kind[schedule.worker], np.arange(graph.count)]
    path = deciding_path(schedule, schedule.start + times)
    if not path:
        return
    for piece, target in _by_promise(path, schedule, times, devices.workers):
        yield _moved(graph, schedule.worker, piece, target)
    for node in path:
        for other in _meanwhile(schedule, times, node):
            swapped = _moved(graph, schedule.worker, np.array([node]), schedule.worker[other])
            yield _moved(graph, swapped, np.array([other]), schedule.worker[node])
    leaders = np.unique(graph.leader)
    for node in leaders[~np.isin(leaders, graph.leader[path])].tolist():
        for target in range(devices.workers):
            if target != schedule.worker[node]:
                yield _moved(graph, schedule.worker, np.array([node]), target)


def deciding_path(schedule: TimedSchedule, end: Integers) -> list[int]:
    """Return the nodes, each waiting for the one before it, of which the last one ends last."""
    node = int(end.argmax()) if len(end) else -1
    path = []
    while node >= 0:
        path.append(node)
        node = int(schedule.cause[node])
    return path[::-1]


def _by_promise(
    path: list[int], schedule: TimedSchedule, times: Integers, workers: int
) -> Iterator[tuple[Integers, int]]:
    """Yield pieces of runs with other workers, those first that save the longest waits.

    Ties keep the order of the path, and longer pieces come first.
    """
    nodes = np.array(path, np.int64)
    home, start = schedule.worker[nodes], schedule.start[nodes]
    waits = np.concatenate([[0], start[1:] - (start + times[nodes])[:-1], [0]])
    before, after = np.concatenate([[-1], home[:-1]]), np.concatenate([home[1:], [-1]])
    first, last = (np.repeat(each, workers) for each in _pieces(home))
    target = np.tile(np.arange(workers), len(first) // workers)
    saved = waits[first] * (before[first] == target) + waits[last] * (after[last - 1] == target)
    order = np.lexsort([target, first, first - last, -saved])
    for place in order[home[first[order]] != target[order]].tolist():
        yield nodes[first[place] : last[place]], int(target[place])


def _pieces(home: Integers) -> tuple[Integers, Integers]:
    """Return where all runs of a path, their halves, the halves of these and so on begin and end."""
    cuts = np.flatnonzero(np.diff(home)) + 1
    first, last = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(home)]])
    found = [(first, last)]
    while (last - first > 1).any():
        long = last - first > 1
        first, last = first[long], last[long]
        middle = (first + last) // 2
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
        found.append((first, last))
    firsts, lasts = zip(*found, strict=True)
    return np.concatenate(firsts), np.concatenate(lasts)


def _meanwhile(schedule: TimedSchedule, times: Integers, node: int) -> list[int]:
    """Return the nodes that run on other workers between the ends of a node's cause and of the node."""
    cause = schedule.cause[node]
    since = schedule.start[cause] + times[cause] if cause >= 0 else 0
    until = schedule.start[node] + times[node]
    runs = (schedule.start < until) & (schedule.start + times > since)
    return np.flatnonzero(runs & (schedule.worker != schedule.worker[node])).tolist()


def _moved(graph: PlacementGraph, worker: Integers, nodes: Integers, target: int) -> Integers:
    """Return a placement in which the leaders of nodes, and all that follow them, have another worker."""
    return np.where(np.isin(graph.leader, graph.leader[nodes]), target, worker)
