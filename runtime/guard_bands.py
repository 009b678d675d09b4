"""Find instructions that write outside their buffers, by a pattern in the bands between all buffers.

Assumes: a memory plan of `guarded_memory`. Before and after each instruction, the bands around the buffers
that it reads and writes on its worker are compared with the pattern, and after each iteration all bands. So
an instruction that overruns one of its buffers is named. If it writes farther away, the tensor that lies
there is named. Scratch of kernels lies elsewhere: `scratch_bands.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ExecutionError
from ..operators.kernels.kernel import Array
from ..programs.clock import reads, writes
from ..programs.memory import MemoryPlan
from ..programs.program import PartitionedGraph
from .collectives import Step

PATTERN = 0xA5
"""The byte that bands are filled with."""


class GuardBands:
    """The bands of one worker's arena, filled with the pattern."""

    def __init__(
        self, partitioned: PartitionedGraph, memory: MemoryPlan, arenas: Sequence[Array], worker: int
    ) -> None:
        self._partitioned = partitioned
        self._worker = worker
        program, offsets, arena = partitioned.programs[worker], memory.offsets[worker], arenas[worker]
        ends = [offset + held.nbytes for offset, held in zip(offsets, program.buffers, strict=True)]
        self._bands = [
            arena[end:start] for end, start in zip([0, *ends], [*offsets, len(arena)], strict=True)
        ]
        """The band before each buffer, and the one after the last."""
        for band in self._bands:
            band[...] = PATTERN

    def watched(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the worker's steps, each between two checks of the bands around its buffers."""
        return tuple(
            self._watched(step, touched)
            for step, touched in zip(steps, map(self._touched, range(len(steps))), strict=True)
        )

    def damage(self, buffers: Sequence[int] | None = None) -> str | None:
        """Describe the first overwritten byte around some buffers, or around all; None if there is none."""
        for buffer in range(len(self._bands) - 1) if buffers is None else buffers:
            before, after = self._bands[buffer], self._bands[buffer + 1]
            if (after != PATTERN).any():
                return f"byte {int((after != PATTERN).argmax())} after {self._named(buffer)}"
            if (before != PATTERN).any():
                return f"byte {int((before != PATTERN)[::-1].argmax()) + 1} before {self._named(buffer)}"
        return None

    def _touched(self, index: int) -> list[int]:
        """List the buffers of this worker that an instruction writes and reads."""
        instruction = self._partitioned.programs[self._worker].instructions[index]
        read = (buffer for owner, buffer in reads(self._worker, instruction) if owner == self._worker)
        return list(dict.fromkeys([*writes(instruction), *read]))

    def _watched(self, step: Step, buffers: Sequence[int]) -> Step:
        def run() -> None:
            if (damage := self.damage(buffers)) is not None:
                raise ExecutionError(
                    f"before this operation, another one that does not use this buffer overwrote {damage}"
                )
            step()
            if (damage := self.damage(buffers)) is not None:
                raise ExecutionError(f"it wrote outside its buffers: it overwrote {damage}")

        return run

    def _named(self, buffer: int) -> str:
        held = self._partitioned.programs[self._worker].buffers[buffer]
        tensor = self._partitioned.graph.tensors[held.tensor]
        return f"the {held.nbytes:,} bytes of '{tensor.name}' ({held.kind})"
