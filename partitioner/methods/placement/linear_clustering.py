"""Linear clustering: paths as clusters, each on the worker that has least to do (Kim and Browne, ICPP 1988).

The clusters are heaviest paths, one after the other. The original computes levels again after each path,
which takes time in the square of the graph's size. Here only the first path is exact, and the others follow
the levels of what it leaves. Clusters go to workers in the order of the top levels at which they begin.
"""

from __future__ import annotations

import numpy as np

from ....support.compiled import Numbers, compiled, looped, zeros
from ....support.integers import Integers
from ..pardnn.slicing import slices
from .graph import PlacementDevices, PlacementGraph
from .levels import levels


def linear_clustering(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node."""
    found = slices(graph, devices, 1)
    begin = np.full(found.count, np.iinfo(np.int64).max)
    np.minimum.at(begin, found.cluster[found.on_path], levels(graph, devices).top[found.on_path])
    return least_loaded(graph, devices, found.cluster, np.argsort(begin, kind="stable"))[found.cluster]


def least_loaded(
    graph: PlacementGraph, devices: PlacementDevices, part: Integers, order: Integers, first: int = -1
) -> Integers:
    """Return the worker of each part of the graph: that on which all work so far would end first.

    `part` gives each node the number of its part. Parts are taken in an order, but the first of them goes to
    the worker `first`, if there is one.
    """
    times = [np.bincount(part, time, len(order)).astype(np.int64) for time in graph.nanoseconds]
    worker = zeros(len(order))
    load_least(looped(np.stack(times)), looped(devices.kind), looped(order), first, worker)
    return np.asarray(worker, np.int64)


@compiled
def load_least(times: Numbers, kind: Numbers, order: Numbers, first: int, worker: Numbers) -> None:
    """Write the worker of each part; ties go to the lowest number. `times` has a row for each kind."""
    loads = zeros(len(kind))
    for place in range(len(order)):
        part = order[place]
        best, least = first, -1
        for each in range(len(kind)):
            end = loads[each] + times[kind[each] * len(order) + part]
            if (least < 0 or end < least) and (place > 0 or first < 0):
                best, least = each, end
        loads[best] += times[kind[best] * len(order) + part]
        worker[part] = best
