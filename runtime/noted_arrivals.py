"""Note in which order gradients arrive: an iteration runs by the order that it makes itself.

The operation that makes a gradient of each replica is followed by a note of its replica. Before an operation
reads a row of `arrivals`, the notes are written to it. It reads the gradients of all replicas, so it waits
for all of them, and the row is complete.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analyzer.indices.region import Interval
from ..dataflow.rewrites.arrivals import ARRIVALS, Arriving, arriving
from ..operators.kernels.kernel import Array
from ..programs.program import Compute, PartitionedGraph
from .collectives import Step


class NotedArrivals:
    """The order in which gradients arrived in this iteration. It costs one call for each of their tasks."""

    def __init__(self, partitioned: PartitionedGraph, buffers: Sequence[Sequence[Array]]) -> None:
        graph = partitioned.graph
        self._partitioned = partitioned
        self._rows = arriving(graph)
        self._found: list[list[int]] = [[] for _ in self._rows]
        maker = {tensor: each.index for each in graph.operations for tensor in each.outputs}
        self._made = {maker[row.local]: row for row in self._rows}
        self._read = {reader: row for row in self._rows for reader in row.readers}
        self._orders: list[list[Array]] = [[] for _ in range(partitioned.workers)]
        for tensor in graph.tensors if self._rows else ():
            if tensor.name == ARRIVALS:
                for worker, buffer in partitioned.homes[tensor.index]:
                    self._orders[worker].append(buffers[worker][buffer])

    def begin(self) -> None:
        """Forget the order of the iteration before."""
        for found in self._found:
            found.clear()

    def end(self) -> None:
        """Write the order to every worker, so that whoever reads the tensor finds it."""
        for held in self._orders:
            for array in held:
                array[...] = self._found

    def watched(self, worker: int, steps: Sequence[Step]) -> list[Step]:
        """Return a worker's steps, of which those that make or pick gradients note or write the order."""
        program = self._partitioned.programs[worker]
        found: list[Step] = []
        for step, instruction in zip(steps, program.instructions, strict=True):
            if isinstance(instruction, Compute) and instruction.operation in self._made:
                row = self._made[instruction.operation]
                replicas = program.buffers[instruction.outputs[0]].region[0]
                found.append(self._noting(step, row, replicas))
            elif isinstance(instruction, Compute) and instruction.operation in self._read:
                found.append(self._writing(step, self._read[instruction.operation], worker))
            else:
                found.append(step)
        return found

    def _noting(self, step: Step, row: Arriving, replicas: Interval) -> Step:
        found, made = self._found[row.row], tuple(range(*replicas))

        def run() -> None:
            step()
            found.extend(made)

        return run

    def _writing(self, step: Step, row: Arriving, worker: int) -> Step:
        found, held = self._found[row.row], self._orders[worker]

        def run() -> None:
            for array in held:
                array[row.row] = found
            step()

        return run
