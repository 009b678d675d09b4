"""All placers by name. Each takes a graph and devices, and returns the worker of every node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ....support.integers import Integers
from ..pardnn.pardnn import place
from .by_tensor import by_tensor
from .chunks import chunks_by_bytes, chunks_by_time
from .critical_path import critical_path
from .graph import PlacementDevices, PlacementGraph
from .heft import heft, heft_with_lanes
from .linear_clustering import linear_clustering
from .one_device import one_device
from .round_robin import round_robin

Placer = Callable[[PlacementGraph, PlacementDevices], Integers]


def placers(tied: Integers | None = None) -> Mapping[str, Placer]:
    """Return the placers; chunks keep nodes together that are tied, see `chunks`."""
    return {
        "one-device": one_device,
        "heft": heft,
        "heft-with-lanes": heft_with_lanes,
        "pardnn": place,
        "critical-path": critical_path,
        "linear-clustering": linear_clustering,
        "round-robin": round_robin,
        "by-tensor": by_tensor,
        "chunks-by-time": partial(chunks_by_time, tied=tied),
        "chunks-by-bytes": partial(chunks_by_bytes, tied=tied),
    }
