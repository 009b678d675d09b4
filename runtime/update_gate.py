"""Skip the instructions that only the last of several micro-batches runs: those that learn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..dataflow.graph import Role
from ..programs.program import PartitionedGraph
from .collectives import Step


def gated_instructions(partitioned: PartitionedGraph) -> list[list[bool]]:
    """Tell, for each worker and instruction, whether it learns, so that only the last micro-batch runs it."""
    graph = partitioned.graph
    sums = any(tensor.role is Role.ACCUMULATOR for tensor in graph.tensors)
    gated = [sums and graph.learns(operation) for operation in graph.operations]
    return [
        [gated[instruction.operation] for instruction in program.instructions]
        for program in partitioned.programs
    ]


class UpdateGate:
    """While `open` is False the gated steps do nothing. Memory, waits and order stay as they are."""

    def __init__(self, partitioned: PartitionedGraph) -> None:
        self.open = True
        self._gated = gated_instructions(partitioned)

    def passed(self, worker: int, steps: Sequence[Step]) -> list[Step]:
        """Return a worker's steps, with those that learn behind the gate."""
        return [
            partial(self._pass, step) if gated else step
            for gated, step in zip(self._gated[worker], steps, strict=True)
        ]

    def _pass(self, step: Step) -> None:
        if self.open:
            step()
