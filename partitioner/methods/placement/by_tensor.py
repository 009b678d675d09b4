"""Operations next to the lasting tensors that they read, and tensors in chunks.

An operation belongs to the largest lasting value that it reads. If it reads none, it belongs to what the
maker of the largest value belongs to that it reads. If that is unknown, it belongs to what its first reader
belongs to. Ties go to the lowest number. So the steps of a recurrent layer stay with its weights, whatever
the order of the graph. All that belongs to one tensor is a bundle of `chunks`. Bundles stand in the order of
their first operations, and each worker gets as many as its speed allows.
"""

from __future__ import annotations

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped
from .chunks import by_first, sources, spread_by_time
from .graph import Integers, PlacementDevices, PlacementGraph
from .wires import Wires, wires


def by_tensor(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node."""
    owner = filled(graph.count, -1)
    own(wires(graph, devices), looped(graph.lasting.astype(np.int64)), looped(graph.sent_bytes), owner)
    found = np.asarray(owner, np.int64)
    _, bundle = np.unique(found[graph.leader], return_inverse=True)
    return spread_by_time(graph, devices, by_first(bundle, sources(graph)))


@compiled
def own(net: Wires, lasting: Numbers, sent_bytes: Numbers, owner: Numbers) -> None:
    """Write the leader of the lasting values to which each node belongs; its own number if there is none."""
    for node in range(len(owner)):
        owner[node] = owned(net, lasting, sent_bytes, owner, node)
    for node in range(len(owner) - 1, -1, -1):
        for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
            value = net.values[number]
            if owner[node] < 0 and net.reader_firsts[value] < net.reader_firsts[value + 1]:
                owner[node] = owner[net.readers[net.reader_firsts[value]]]
        if owner[node] < 0:
            owner[node] = node


@compiled
def owned(net: Wires, lasting: Numbers, sent_bytes: Numbers, owner: Numbers, node: int) -> int:
    """Return to what a node belongs, if all nodes before it are known; -1 if that is unknown."""
    for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
        if lasting[net.values[number]] == 1:
            return int(net.leader[node])
    best, largest, lasts = -1, -1, 0
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        value = net.inputs[place]
        home = net.leader[net.maker[value]] if lasting[value] == 1 else owner[net.maker[value]]
        better = lasting[value] > lasts or (lasting[value] == lasts and sent_bytes[value] > largest)
        if home >= 0 and better:
            best, largest, lasts = home, sent_bytes[value], lasting[value]
    return int(best)
