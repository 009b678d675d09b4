"""Slicing: paths of nodes as clusters (ParDNN, section 3.1.1, algorithm 1).

A *cluster* is a path, and the nodes that lead or follow those of the path. The first clusters, the *primary*
ones, are longest paths of what is left of the graph: levels are computed again after each. The others, the
*secondary* ones, follow the levels of what the primaries leave.

The paper computes the levels before it removes a path (line 7 before line 11), so the next path would be
found by levels that contain it. Here the path is removed first. A path goes on with the node that has the
longest path from it, the message included. The paper goes by the longest path through the node, which is the
same on the longest path of all only. Secondaries begin with the node that has the longest path through it, of
several with that of the least top level. Further ties go to the lowest number. A thin graph may have fewer
paths that take time than there are workers, and then has fewer primaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....support.compiled import Numbers, compiled, filled, looped, zeros
from ....support.integers import Integers
from ..placement.graph import PlacementDevices, PlacementGraph
from ..placement.levels import fill_levels
from ..placement.wires import Wires, mean_nanoseconds, wires


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """All clusters of a graph; the primary ones have the lowest numbers."""

    cluster: Integers
    """The cluster of each node: `[n]`."""

    on_path: npt.NDArray[np.bool_]
    """Whether each node is on the path of its cluster; the others lead or follow such nodes: `[n]`."""

    primaries: int
    """The number of primary clusters."""

    @property
    def count(self) -> int:
        """Return the number of clusters."""
        return int(self.cluster.max(initial=-1)) + 1


class Cutting(NamedTuple):
    """The state of slicing."""

    cluster: Numbers
    """The cluster of each node; -1 if it has none yet."""

    on_path: Numbers
    """Whether each node is on the path of its cluster."""

    gone: Numbers
    """Whether each node was in a cluster when levels were computed last."""

    top: Numbers
    """The length of the longest path to each node."""

    bottom: Numbers
    """The length of the longest path from each node."""


def slices(graph: PlacementGraph, devices: PlacementDevices, primaries: int) -> Slices:
    """Cut a graph into clusters, the first of which are longest paths: as many as asked for, if there are."""
    net, time = wires(graph, devices), looped(mean_nanoseconds(graph, devices))
    count = graph.count
    cut = Cutting(filled(count, -1), zeros(count), zeros(count), zeros(count), zeros(count))
    found = 0
    for number in range(primaries):
        remove(net, time, cut)
        found += cut_first(net, cut, number)
    remove(net, time, cut)
    top, bottom = np.asarray(cut.top, np.int64), np.asarray(cut.bottom, np.int64)
    order = np.lexsort([np.arange(count), top, -(top + bottom)])
    cut_rest(net, cut, looped(order), found)
    return Slices(np.asarray(cut.cluster, np.int64), np.asarray(cut.on_path, bool), found)


@compiled
def remove(net: Wires, time: Numbers, cut: Cutting) -> None:
    """Take the nodes of clusters out of the graph, and compute the levels of the others."""
    for node in range(len(cut.cluster)):
        cut.gone[node] = 1 if cut.cluster[node] >= 0 else 0
    fill_levels(net, time, net.leader, cut.gone, cut.top, cut.bottom)


@compiled
def cut_first(net: Wires, cut: Cutting, number: int) -> int:
    """Make the longest path a cluster; return how many clusters that gives."""
    first, longest = -1, 0
    for node in range(len(cut.cluster)):
        if cut.cluster[node] < 0 and cut.bottom[node] > longest:
            first, longest = node, cut.bottom[node]
    if first >= 0:
        walk(net, cut, first, number)
        return 1
    return 0


@compiled
def cut_rest(net: Wires, cut: Cutting, order: Numbers, number: int) -> None:
    """Make paths of all nodes that have no cluster, beginning with the first ones of an order."""
    for place in range(len(order)):
        if cut.cluster[order[place]] < 0:
            walk(net, cut, order[place], number)
            number += 1


@compiled
def walk(net: Wires, cut: Cutting, node: int, number: int) -> None:
    """Make a path a cluster: from a node on to where the longest way leads, until none is left."""
    while node >= 0:
        leader = net.leader[node]
        for place in range(net.member_firsts[leader], net.member_firsts[leader + 1]):
            cut.cluster[net.members[place]] = number
        cut.on_path[node] = 1
        node = following(net, cut, node, number)


@compiled
def following(net: Wires, cut: Cutting, node: int, number: int) -> int:
    """Return the node with which a path goes on; -1 if it ends."""
    best, longest = -1, -1
    for each in range(net.value_firsts[node], net.value_firsts[node + 1]):
        value = net.values[each]
        for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
            other = net.readers[place]
            if cut.gone[other] == 0 and (cut.cluster[other] < 0 or cut.cluster[other] == number):
                crossing = 0 if net.leader[other] == net.leader[node] else net.message[value]
                length = cut.bottom[other] + crossing
                if length > longest or (length == longest and other < best):
                    best, longest = other, length
    for place in range(net.after_firsts[node], net.after_firsts[node + 1]):
        other = net.after[place]
        if cut.gone[other] == 0 and (cut.cluster[other] < 0 or cut.cluster[other] == number):
            length = cut.bottom[other]
            if length > longest or (length == longest and other < best):
                best, longest = other, length
    return int(best)
