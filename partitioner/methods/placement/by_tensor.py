"""Operations next to the tensors that they read, and tensors in chunks.

An operation *belongs* to the largest tensor that it reads. If it reads none, it follows the operation that
makes the largest value that it reads. If that belongs to none, it follows its first reader. Ties go to the
lowest number. So the steps of a recurrent layer stay with its weights, whatever the order of the graph. All
that belongs to one tensor is a bundle of `chunks`. Bundles stand in the order of their first operations, and
each worker gets as many as its speed allows.
"""

from __future__ import annotations

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped
from ....support.integers import Integers
from .chunks import by_first, sources, spread_by_time
from .graph import PlacementDevices, PlacementGraph
from .wires import Wires, wires


def by_tensor(graph: PlacementGraph, devices: PlacementDevices) -> Integers:
    """Return the worker of every node."""
    owner = filled(graph.count, -1)
    source = sources(graph)
    own(wires(graph, devices), looped(source.astype(np.int64)), looped(graph.sent_bytes), owner)
    found = np.asarray(owner, np.int64)
    _, bundle = np.unique(found[graph.leader], return_inverse=True)
    return spread_by_time(graph, devices, by_first(bundle, source))


@compiled
def own(net: Wires, source: Numbers, sent_bytes: Numbers, owner: Numbers) -> None:
    """Write the leader of the tensor to which each node belongs; the last node's number if there is none."""
    for node in range(len(owner)):
        owner[node] = net.leader[node] if source[node] == 1 else owned(net, source, sent_bytes, owner, node)
    for node in range(len(owner) - 1, -1, -1):
        for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
            value = net.values[number]
            if owner[node] < 0 and net.reader_firsts[value] < net.reader_firsts[value + 1]:
                owner[node] = owner[net.readers[net.reader_firsts[value]]]
        if owner[node] < 0:
            owner[node] = node


@compiled
def owned(net: Wires, source: Numbers, sent_bytes: Numbers, owner: Numbers, node: int) -> int:
    """Return to what an operation belongs, if all nodes before it are known; -1 if that is unknown."""
    best, largest, of_tensor = -1, -1, 0
    for place in range(net.input_firsts[node], net.input_firsts[node + 1]):
        value = net.inputs[place]
        maker = net.maker[value]
        better = source[maker] > of_tensor or (source[maker] == of_tensor and sent_bytes[value] > largest)
        if owner[maker] >= 0 and better:
            best, largest, of_tensor = owner[maker], sent_bytes[value], source[maker]
    return int(best)
