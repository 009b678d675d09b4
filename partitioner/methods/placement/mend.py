"""Move nodes until every worker fits its memory, at little cost, with the order as it is.

    variables    worker[n] for every node n
    objective    little time of computing and messages added, by moves of least cost for each byte freed
    constraints  the arena of every worker is at most its memory

Live bytes are bounded first, by moves at the tick at which a worker holds most (`relief`). Arenas may be
larger than the most live bytes. If one exceeds the memory, the bound of its worker falls by the difference,
and moves go on. A placement that is returned fits. If moves find none, all placements of few nodes are tried.
That none is found for more does not prove that there is none, except if a node or the lasting values exceed
the memory by themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....errors import PlanError
from ....support.compiled import numbers, plain, zeros
from ....support.integers import Integers
from .every_placement import TooManyError, fitting_placement
from .graph import PlacementDevices, PlacementGraph
from .lifetimes import SCRATCH, LiveIntervals, live_intervals
from .live_tree import peak
from .movable import movable
from .neighbourhoods import part_bytes
from .relief import EVERYWHERE, LESS_IN_ALL, NEAR, relieve
from .taking_over import most_taken_over

ROUNDS = 8
"""How often the bounds on live bytes fall at most because of arenas."""

PATIENCE = 2
"""The rounds for each worker in which the bytes beyond all limits do not fall, after which a placement is
given up. In a round moves free memory of one worker, or are looked for in vain.
"""

SHOWN = 3
"""The number of values that an error names."""


def mend(graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers) -> Integers:
    """Return the worker of each node after moves that make all arenas fit; the same if they fit already.

    Nodes run in `order`. Raises PlanError if a node or the lasting values cannot fit, or if no moves are
    found.
    """
    memory = devices.memory_bytes
    if memory is None:
        return worker
    check_least(graph, memory)
    _check_together(graph, memory, order)
    try:
        return _moved(graph, devices, order, worker, memory)
    except PlanError as error:
        return _tried(graph, order, memory, error)


def _tried(graph: PlacementGraph, order: Integers, memory: Integers, error: PlanError) -> Integers:
    """Return the placement of few nodes that fits. Raises PlanError if there is none, or that of moves."""
    try:
        found = fitting_placement(graph, memory, order)
    except TooManyError:
        raise error from None
    if found is None:
        raise PlanError(f"{error}; all placements in this order were tried, and none fits")
    return found


def _moved(
    graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers, memory: Integers
) -> Integers:
    """Return the worker of each node after moves that make all arenas fit. Raises PlanError if none do."""
    limits = memory.copy()
    for _ in range(ROUNDS):
        worker = _within(graph, devices, order, worker, limits)
        live = live_intervals(graph, devices.workers, order, worker)
        excess = live.arena_bytes(memory) - memory
        if (excess <= 0).all():
            return worker
        limits = np.maximum(np.minimum(limits, live.peak_bytes) - np.maximum(excess, 0), 0)
    fullest = int(excess.argmax())
    raise PlanError(
        f"the arena of worker {fullest} takes {excess[fullest] + memory[fullest]:,} bytes of its "
        f"{memory[fullest]:,}, although it holds at most {live.peak_bytes[fullest]:,} at once; use more "
        f"memory or more workers"
    )


def check_least(graph: PlacementGraph, memory: Integers) -> None:
    """Raise PlanError if a node alone, or all lasting values together, exceed the memory of the devices."""
    needed = least_bytes(graph)
    largest = int(needed.argmax())
    if needed[largest] > memory.max():
        raise PlanError(
            f"node {graph.names[largest]!r} alone needs {needed[largest]:,} bytes for what it reads, makes "
            f"and works in, and for what lasts on its worker; the largest device has {memory.max():,}; use "
            f"larger devices, or split the node"
        )
    lasting = int(graph.whole_bytes[graph.lasting].sum())
    if lasting > memory.sum():
        raise PlanError(
            f"values that last take {lasting:,} bytes, and all {len(memory)} workers together have "
            f"{memory.sum():,}; use more memory or more workers"
        )


def _check_together(graph: PlacementGraph, memory: Integers, order: Integers) -> None:
    """Raise PlanError if all devices together lack memory when some node runs, wherever the nodes are."""
    row = together_bytes(graph, order)
    if len(row) and row.max() > memory.sum():
        name = graph.names[order[row.argmax()]]
        raise PlanError(
            f"all workers together hold at least {row.max():,} bytes when {name!r} runs, and may hold "
            f"{memory.sum():,}; use more memory or more workers"
        )


def together_bytes(graph: PlacementGraph, order: Integers) -> Integers:
    """Return the bytes that all workers together hold at least at each tick, wherever the nodes are: `[n]`.

    A value is somewhere from its maker to its last reader, at home or as a copy.
    """
    whole = graph.whole_bytes
    passing = np.minimum(whole, graph.sent_bytes)
    least = replace(
        graph,
        stored_bytes=np.where(graph.lasting, whole, passing),
        shared_nodes=graph.shared_nodes[:0],
    )
    return live_intervals(least, 1, order, np.zeros(graph.count, np.int64)).live_bytes(0)


def least_bytes(graph: PlacementGraph) -> Integers:
    """Return the bytes that the worker of each node holds at least when it runs.

    These are its scratch, its own values and those that it reads, and what lasts of the nodes that share its
    worker. A value that is read may be a copy, or overwrite another one. One that is made may take over the
    memory of one that is read.
    """
    value, reader = graph.readers.row_of_entries, graph.readers.entries
    leader = graph.leader[graph.maker]
    passing = np.where(graph.lasting, 0, graph.stored_bytes)
    near = leader[value] == graph.leader[reader]
    found = graph.scratch_bytes.copy()
    np.add.at(found, graph.maker, passing)
    distant = np.minimum(graph.whole_bytes, graph.sent_bytes)[value]
    distant = np.where(graph.shared[reader], part_bytes(graph, distant), distant)
    np.add.at(found, reader, np.where(near, passing[value], distant))
    lasting = np.zeros(graph.count, np.int64)
    np.add.at(lasting, leader[graph.lasting], graph.stored_bytes[graph.lasting])
    found += lasting[graph.leader]
    return found - most_taken_over(graph)


def _within(
    graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers, limits: Integers
) -> Integers:
    """Return a placement whose live bytes are within limits. Raises PlanError if no moves are found."""
    live = live_intervals(graph, devices.workers, order, worker)
    if (live.peak_bytes <= limits).all():
        return worker
    beyond = live.fixed.peak_bytes - limits
    if (beyond > 0).any():
        fullest = int(beyond.argmax())
        raise PlanError(_refusal(graph, live, order, fullest, int(limits[fullest])))
    state, workers = movable(graph, devices, order, worker), range(devices.workers)
    bounds, moved = numbers(limits.tolist()), zeros(graph.count)
    stuck: set[int] = set()
    least, since, moves = int(np.iinfo(np.int64).max), 0, 0
    while since <= PATIENCE * devices.workers:
        excess = [peak(state.highest, state.leaves, each) - int(limits[each]) for each in workers]
        over = {each for each in workers if excess[each] > 0}
        if not over:
            break
        in_all = sum(excess[each] for each in over)
        least, since = min(least, in_all), 0 if in_all < least else since + 1
        if over <= stuck:
            if not moves:
                break
            stuck.clear()
            moves = 0
        fullest = max(over - stuck, key=lambda each: (excess[each], -each))
        if any(
            relieve(state, bounds, moved, fullest, freedom) for freedom in (NEAR, EVERYWHERE, LESS_IN_ALL)
        ):
            moves += 1
        else:
            stuck.add(fullest)
    found = np.where(graph.shared, worker, plain(state.worker))
    live = live_intervals(graph, devices.workers, order, found)
    beyond = live.peak_bytes - limits
    if (beyond > 0).any():
        fullest = int(beyond.argmax())
        raise PlanError(_refusal(graph, live, order, fullest, int(limits[fullest])))
    return found


def _refusal(graph: PlacementGraph, live: LiveIntervals, order: Integers, worker: int, limit: int) -> str:
    """Say why a worker does not fit."""
    row = live.live_bytes(worker)
    tick = int(row.argmax())
    largest = [
        f"{graph.names[graph.maker[live.value[each]]]!r} ({live.nbytes[each]:,} bytes)"
        for each in live.live_at(worker, tick)
        if live.value[each] != SCRATCH
    ]
    return (
        f"worker {worker} holds {row[tick]:,} bytes when {graph.names[order[tick]]!r} runs, and may hold "
        f"{limit:,}; no moves to other workers were found that free the rest; the largest of what it holds "
        f"are made by {', '.join(largest[:SHOWN])}; use more memory or more workers"
    )
