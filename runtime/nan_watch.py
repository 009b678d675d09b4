"""Stop at the first instruction whose result holds NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..analyzer.indices.region import Region
from ..dataflow.element_types import host_type
from ..operators.kernels.kernel import Array
from ..operators.kernels.narrow import wide_type
from ..programs.clock import writes
from ..programs.program import PartitionedGraph
from .collectives import Step


def watched(
    partitioned: PartitionedGraph, buffers: Sequence[Sequence[Array]], worker: int, steps: Sequence[Step]
) -> tuple[Step, ...]:
    """Return a worker's steps, each followed by a check of its results.

    A step raises FloatingPointError naming the tensor and the element, in the whole tensor's indices.
    """
    program = partitioned.programs[worker]
    found: list[Step] = []
    for step, instruction in zip(steps, program.instructions, strict=True):
        targets = [
            (partitioned.graph.tensors[held.tensor].name, buffers[worker][held.index], held.region)
            for held in map(program.buffers.__getitem__, writes(instruction))
            if host_type(partitioned.graph.tensors[held.tensor].dtype).kind == "f"
        ]
        found.append(_watched(step, targets) if targets else step)
    return tuple(found)


def _watched(step: Step, targets: Sequence[tuple[str, Array, Region]]) -> Step:
    def run() -> None:
        step()
        for name, array, region in targets:
            if (found := first_nan(name, array, region)) is not None:
                raise FloatingPointError(f"{found} is not a number")

    return run


def first_nan(name: str, array: Array, region: Region) -> str | None:
    """Find the first NaN in a tensor's region, as `name[2, 0]`; None if there is none."""
    with np.errstate(all="ignore"):
        total = array.sum(dtype=wide_type([array]))
    if total == total:
        return None
    # the sum of infinities of both signs is NaN too
    places = np.argwhere(np.isnan(array))
    if not len(places):
        return None
    at = ", ".join(str(lower + index) for (lower, _), index in zip(region, places[0].tolist(), strict=True))
    return f"{name}[{at or '()'}]"
