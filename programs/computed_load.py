"""The computations of every worker, and whether one has much more than the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .instruction_work import computations, count_work
from .program import PartitionedGraph

UNEVEN = 1.1
"""The load of the busiest worker, over the mean, above which reports tell of it."""


@dataclass(frozen=True, slots=True)
class ComputedLoad:
    """The floating-point operations of every worker in one iteration."""

    flops: tuple[int, ...]
    """The operations of each; those that opaque functions hide are not counted."""

    @property
    def busiest(self) -> int:
        """Return the number of the worker with the most operations."""
        return self.flops.index(max(self.flops))

    @property
    def ratio(self) -> float:
        """Return the most operations of a worker over the mean of all; 1 if nothing is counted."""
        total = sum(self.flops)
        return max(self.flops) * len(self.flops) / total if total else 1.0


def computed_load(partitioned: PartitionedGraph) -> ComputedLoad:
    """Count the floating-point operations of every worker."""
    flops = np.zeros(len(partitioned.programs), np.int64)
    for same in computations(partitioned):
        work = count_work(partitioned.graph, same.operation, same.boxes)
        if work.flops is not None:
            np.add.at(flops, [worker for worker, _ in same.places], work.flops)
    return ComputedLoad(tuple(flops.tolist()))
