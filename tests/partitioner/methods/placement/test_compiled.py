"""Compiled loops and plain Python find the same placements."""

from __future__ import annotations

from hashlib import sha256

from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.partitioner.methods.placement.refine import improve

from ....compiled_loops import same_in_plain_python
from .random_graphs import joined_devices, training_like


def digest() -> str:
    """Return a fingerprint of all placements and schedules of some graphs, and of their refinement."""
    found = sha256()
    for seed in range(6):
        graph, devices = training_like(seed, 60, 2), joined_devices(3, kinds=2)
        placed = portfolio(graph, devices)
        refined = improve(graph, devices, placed[-1].schedule.worker, lambda _: True, 40)
        for each in [*(one.schedule for one in placed), refined]:
            for array in (each.worker, each.order, each.start, each.cause):
                found.update(array.tobytes())
        found.update(repr([(one.placer, one.priority, one.schedule.nanoseconds) for one in placed]).encode())
    return found.hexdigest()


def test_plain_python_finds_what_compiled_loops_find() -> None:
    same_in_plain_python(digest)
