"""Stopping at the instruction whose result is the first that is not a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dataflow.partitioned import PartitionedGraph
from ..operators.kernel import Array
from .collectives import Step
from .timeline import writes


def watched(
    partitioned: PartitionedGraph, buffers: Sequence[Sequence[Array]], worker: int, steps: Sequence[Step]
) -> tuple[Step, ...]:
    """A worker's steps, each followed by a look at what it wrote.

    A step raises FloatingPointError naming the tensor and the element, in the whole tensor's indices.
    """
    program = partitioned.programs[worker]
    found: list[Step] = []
    for step, instruction in zip(steps, program.instructions, strict=True):
        targets = [
            (partitioned.graph.tensors[program.buffers[index].tensor].name, buffers[worker][index], start)
            for index in writes(instruction)
            if buffers[worker][index].dtype.kind == "f"
            for start in ([lower for lower, _ in program.buffers[index].region],)
        ]
        found.append(_watched(step, targets) if targets else step)
    return tuple(found)


def _watched(step: Step, targets: Sequence[tuple[str, Array, Sequence[int]]]) -> Step:
    def run() -> None:
        step()
        for name, array, start in targets:
            place = first_nan(array)
            if place is not None:
                at = ", ".join(str(lower + index) for lower, index in zip(start, place, strict=True))
                raise FloatingPointError(f"{name}[{at or '()'}] is not a number")

    return run


def first_nan(array: Array) -> tuple[int, ...] | None:
    """The index of the first element that is not a number; None where there is none."""
    with np.errstate(all="ignore"):
        total = array.sum()
    if total == total:
        return None
    # infinities of both signs give no number either
    places = np.argwhere(np.isnan(array))
    return tuple(places[0].tolist()) if len(places) else None
