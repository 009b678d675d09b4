"""Random graphs of whole operations, devices, orders and placements."""

from __future__ import annotations

import numpy as np

from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.shares import with_shares
from tofu.support.integer_lists import IntegerLists


def drawn(generator: np.random.Generator, nodes: int, sizes: int = 100) -> PlacementGraph:
    """Draw a graph: nodes make up to two values; some last, some take over memory; some share a worker."""
    counts = generator.integers(0, 3, nodes)
    maker = np.repeat(np.arange(nodes), counts)
    readers = []
    for node in maker.tolist():
        later = np.arange(node + 1, nodes)
        readers.append(np.sort(generator.permutation(later)[: generator.integers(0, 5)]))
    leader = np.arange(nodes)
    for node in range(1, nodes):
        if generator.random() < 0.2:
            leader[node] = leader[generator.integers(0, node)]
    after = [
        generator.integers(node + 1, nodes, 1) if node + 1 < nodes and generator.random() < 0.1 else []
        for node in range(nodes)
    ]
    count = len(maker)
    lasting = generator.random(count) < 0.2
    stored = generator.integers(0, sizes, count) * (generator.random(count) < 0.9)
    sent = generator.integers(0, sizes, count)
    in_place = []
    for value, node in enumerate(maker.tolist()):
        for read in generator.permutation(count).tolist():
            free = not lasting[value] and stored[value] > 0
            if free and node in readers[read] and generator.random() < 0.7:
                stored[read] = sent[read] = stored[value]
                in_place.append((value, read))
    in_place = [pair for pair in in_place if len({stored[pair[0]], stored[pair[1]], sent[pair[1]]}) == 1]
    return PlacementGraph(
        names=tuple(f"n{node}" for node in range(nodes)),
        nanoseconds=generator.integers(0, 50, (2, nodes)),
        maker=maker,
        sent_bytes=sent,
        stored_bytes=stored,
        readers=IntegerLists.of([each.tolist() for each in readers]),
        after=IntegerLists.of([list(each) for each in after]),
        leader=leader,
        lasting=lasting,
        scratch_bytes=generator.integers(0, sizes, nodes) * (generator.random(nodes) < 0.3),
        in_place=np.array(in_place, np.int64).reshape(-1, 2),
    )


def drawn_shares(generator: np.random.Generator, graph: PlacementGraph, parts: int) -> PlacementGraph:
    """Let neighbours share some nodes of a graph, and those that share a worker with them."""
    chosen = (generator.random(graph.count) < 0.3)[graph.leader]
    return with_shares(graph, chosen, graph.nanoseconds // parts, parts)


def drawn_devices(
    generator: np.random.Generator, workers: int, memory_bytes: list[int] | None = None
) -> PlacementDevices:
    """Draw devices of two kinds, with links that differ."""
    per_byte = generator.random((workers, workers)) * 2
    np.fill_diagonal(per_byte, 0)
    latency = generator.integers(0, 20, (workers, workers))
    np.fill_diagonal(latency, 0)
    memory = None if memory_bytes is None else np.array(memory_bytes, np.int64)
    return PlacementDevices(generator.integers(0, 2, workers), latency, per_byte, memory)


def drawn_order(generator: np.random.Generator, graph: PlacementGraph) -> np.ndarray:
    """Draw an order that respects all edges."""
    missing = np.bincount(graph.edges[:, 1], minlength=graph.count)
    ready = [node for node in range(graph.count) if not missing[node]]
    order = []
    while ready:
        node = ready.pop(int(generator.integers(len(ready))))
        order.append(node)
        for follower in graph.edges[graph.edges[:, 0] == node, 1].tolist():
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return np.array(order, np.int64)


def drawn_workers(generator: np.random.Generator, graph: PlacementGraph, workers: int) -> np.ndarray:
    """Draw a worker for every node; those that share one have the same."""
    return generator.integers(0, workers, graph.count)[graph.leader]
