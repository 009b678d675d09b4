"""Try all placements of few nodes in a fixed order, until one fits the memory or it is sure that none does.

    variables    the worker of every node that leads
    constraints  the arena of every worker is at most its memory
    bound        live bytes of a worker, if all other nodes are on one more, and copies are as small as can be
    steps        depth first, nodes with most bytes first; none that exceeds the memory is continued

The bound of a worker never falls if a further node comes to it: a value then lives there at least as long,
and fewer values take over memory. Nor does what it holds fall if others are on several workers: each of them
takes a value at its first reader there, so the last of them no earlier than the first of all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....support.integers import Integers
from .graph import PlacementGraph
from .lifetimes import live_intervals

FEW = 16
"""The most nodes that lead of graphs whose placements are tried."""

MOST_STEPS = 4096
"""The placements of some nodes that are looked at; after these nothing is sure."""


class TooManyError(Exception):
    """Raised if there are too many placements to try."""


def fitting_placement(graph: PlacementGraph, memory: Integers, order: Integers) -> Integers | None:
    """Return the first placement found whose arenas fit; None if there is none in this order.

    Raises TooManyError if that is not found out within `MOST_STEPS`.
    """
    leaders = np.unique(graph.leader)
    if len(leaders) > FEW or len(graph.shared_nodes):
        raise TooManyError
    workers, equal = len(memory), bool((memory == memory[0]).all())
    nbytes = np.zeros(graph.count, np.int64)
    np.add.at(nbytes, graph.leader[graph.maker], graph.stored_bytes)
    leaders = leaders[np.argsort(-nbytes[leaders], kind="stable")]
    least = replace(graph, sent_bytes=np.minimum(graph.sent_bytes, graph.stored_bytes))
    waiting: list[tuple[int, ...]] = [()]
    for _ in range(MOST_STEPS):
        if not waiting:
            return None
        chosen = waiting.pop()
        worker = np.full(graph.count, workers)
        worker[leaders[: len(chosen)]] = chosen
        worker = worker[graph.leader]
        if chosen:
            elsewhere = (worker != chosen[-1]).astype(np.int64)
            if live_intervals(least, 2, order, elsewhere).peak_bytes[0] > memory[chosen[-1]]:
                continue
        if len(chosen) == len(leaders):
            if (live_intervals(graph, workers, order, worker).arena_bytes(memory) <= memory).all():
                return worker
            continue
        some = min(max(chosen, default=-1) + 2, workers) if equal else workers
        waiting += [(*chosen, each) for each in reversed(range(some))]
    raise TooManyError
