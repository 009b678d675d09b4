"""Longest paths to and from every node, with messages between nodes that may stand on different workers.

The *top level* of a node is the length of the longest path to it, without its own time. Its *bottom level* is
that of the longest path from it, with its own time. A message counts the mean over pairs of workers, if its
two ends are not in one *set*. Order without a value takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped, zeros
from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph
from .wires import Wires, mean_nanoseconds, wires


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The longest paths through each node, in nanoseconds."""

    top: Integers
    """The length of the longest path to each node, without its own time."""

    bottom: Integers
    """The length of the longest path from each node, with its own time."""


def levels(graph: PlacementGraph, devices: PlacementDevices, sets: Integers | None = None) -> Levels:
    """Return the levels of all nodes.

    `sets` gives a number to each node. Messages between nodes of the same number are free. By default it is
    the number of the leader.
    """
    net, time = wires(graph, devices), looped(mean_nanoseconds(graph, devices))
    known = looped(graph.leader if sets is None else sets)
    top, bottom = filled(graph.count, 0), filled(graph.count, 0)
    fill_levels(net, time, known, zeros(graph.count), top, bottom)
    return Levels(np.asarray(top, np.int64), np.asarray(bottom, np.int64))


@compiled
def fill_levels(
    net: Wires, time: Numbers, sets: Numbers, gone: Numbers, top: Numbers, bottom: Numbers
) -> None:
    """Write the levels of all nodes in the graph without those that are gone, which have 0."""
    fill_top(net, time, sets, gone, top)
    fill_bottom(net, time, sets, gone, bottom)


@compiled
def fill_top(net: Wires, time: Numbers, sets: Numbers, gone: Numbers, top: Numbers) -> None:
    """Write the top levels, from the first node on."""
    for node in range(len(top)):
        level = 0
        if gone[node] == 0:
            for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
                value = net.inputs[place]
                maker = net.maker[value]
                if gone[maker] == 0:
                    crossing = 0 if sets[maker] == sets[node] else net.message[value]
                    level = max(level, top[maker] + time[maker] + crossing)
            for place in range(net.before_firsts[node], net.before_firsts[node + 1]):
                other = net.before[place]
                if gone[other] == 0:
                    level = max(level, top[other] + time[other])
        top[node] = level


@compiled
def fill_bottom(net: Wires, time: Numbers, sets: Numbers, gone: Numbers, bottom: Numbers) -> None:
    """Write the bottom levels, from the last node on."""
    for node in range(len(bottom) - 1, -1, -1):
        level = 0
        if gone[node] == 0:
            for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
                value = net.values[number]
                for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
                    reader = net.readers[place]
                    if gone[reader] == 0:
                        crossing = 0 if sets[reader] == sets[node] else net.message[value]
                        level = max(level, bottom[reader] + crossing)
            for place in range(net.after_firsts[node], net.after_firsts[node + 1]):
                other = net.after[place]
                if gone[other] == 0:
                    level = max(level, bottom[other])
            level += time[node]
        bottom[node] = level
