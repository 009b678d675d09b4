"""Compiled loops and plain Python find the same placements."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.partitioner.methods.placement.refine import improve

from .random_graphs import joined_devices, training_like

SEQUENCE = """
import sys
if sys.argv[1] == "plain":
    sys.modules["numba"] = None
from tests.partitioner.methods.placement.test_compiled import digest
from tofu.support.compiled import COMPILED
print(COMPILED, digest())
"""


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
    pytest.importorskip("numba")
    compiled, plain = (
        subprocess.run(
            [sys.executable, "-c", SEQUENCE, how],
            cwd=Path(__file__).parents[4],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for how in ("compiled", "plain")
    )
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[1] == plain[1]
