"""Random graphs of whole operations, and devices for them."""

from __future__ import annotations

import numpy as np

from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.support.integer_lists import IntegerLists


def random_graph(
    seed: int, count: int = 10, density: float = 0.25, bytes_per_value: int = 1000, kinds: int = 1
) -> PlacementGraph:
    """Return operations of one value each, of which any two are joined with a probability."""
    draw = np.random.default_rng(seed)
    readers = [[j for j in range(i + 1, count) if draw.random() < density] for i in range(count)]
    return PlacementGraph(
        names=tuple(f"n{node}" for node in range(count)),
        nanoseconds=draw.integers(1000, 10_000, (kinds, count)),
        maker=np.arange(count),
        sent_bytes=draw.integers(1, 2 * bytes_per_value, count),
        stored_bytes=draw.integers(1, 2 * bytes_per_value, count),
        readers=IntegerLists.of(readers),
        after=IntegerLists.of([[] for _ in range(count)]),
        leader=np.arange(count),
        lasting=np.zeros(count, bool),
        scratch_bytes=np.zeros(count, np.int64),
    )


def training_like(seed: int, count: int = 20, kinds: int = 1) -> PlacementGraph:
    """Return tensors, operations with several values, and updates of tensors after their readers."""
    draw = np.random.default_rng(seed)
    tensors = count // 5
    updates = tensors // 2
    times = draw.integers(0, 50, (kinds, count)) * 100
    times[:, :tensors] = 0
    maker = np.sort(np.concatenate([np.arange(count), draw.integers(tensors, count, count // 4)]))
    readers: list[list[int]] = []
    for made_by in maker.tolist():
        later = np.arange(max(made_by + 1, tensors), count)
        readers.append(
            sorted(draw.choice(later, min(len(later), draw.integers(0, 4)), replace=False).tolist())
        )
    leader = np.arange(count)
    after: list[list[int]] = [[] for _ in range(count)]
    for number in range(updates):
        update = count - updates + number
        leader[update] = number
        for node in readers[number]:
            if node < count - updates:
                after[node].append(update)
    return PlacementGraph(
        names=tuple(f"n{node}" for node in range(count)),
        nanoseconds=times,
        maker=maker,
        sent_bytes=draw.integers(0, 3000, len(maker)),
        stored_bytes=draw.integers(0, 3000, len(maker)),
        readers=IntegerLists.of(readers),
        after=IntegerLists.of(after),
        leader=leader,
        lasting=maker < tensors,
        scratch_bytes=np.zeros(count, np.int64),
    )


def joined_devices(
    workers: int, latency: int = 100, per_byte: float = 1.0, kinds: int = 1
) -> PlacementDevices:
    """Return workers with equal links between all of them, and kinds by turns."""
    apart = ~np.eye(workers, dtype=bool)
    return PlacementDevices(np.arange(workers) % kinds, latency * apart, per_byte * apart, None)
