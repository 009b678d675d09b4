"""Instructions that only the last of several micro-batches runs: those of operations that learn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..dataflow.graph import Role
from ..dataflow.partitioned import PartitionedGraph
from .collectives import Step


class UpdateGate:
    """While `open` is False the gated steps do nothing. Memory, waits and order stay as they are."""

    def __init__(self) -> None:
        self.open = True

    def gated(self, partitioned: PartitionedGraph, worker: int, steps: Sequence[Step]) -> tuple[Step, ...]:
        """A worker's steps; where the graph sums gradients up, those that learn pass through the gate."""
        graph = partitioned.graph
        if not any(tensor.role is Role.ACCUMULATOR for tensor in graph.tensors):
            return tuple(steps)
        learning = [graph.learns(operation) for operation in graph.operations]
        instructions = partitioned.programs[worker].instructions
        return tuple(
            partial(self._pass, step) if learning[instruction.operation] else step
            for instruction, step in zip(instructions, steps, strict=True)
        )

    def _pass(self, step: Step) -> None:
        if self.open:
            step()
