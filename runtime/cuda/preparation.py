"""Prepare a worker's instructions as commands: the NumPy engine's lists, on addresses.

All commands of a lane share scratch, because they run one after the other. Its size is known once every
instruction has been prepared. Instructions that took scratch are then prepared again at its final address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import assert_never

from ...dataflow.graph import Graph
from ...operators.cuda.compute import compute
from ...operators.cuda.launch.commands import Command, Convolution
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import FLAG_BYTES, DeviceWorkspace
from ...operators.cuda.transfers import transfers
from ...operators.cuda.transfers.reduction_cells import Pair
from ...programs.clock import transferred
from ...programs.memory import MemoryPlan
from ...programs.program import (
    Compute,
    Instruction,
    Lane,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Reduce,
    lane_of,
)
from ..buffer_views import BufferViews
from ..preparation import errors_named
from .machine import CudaMachine
from .peer_copies import stage
from .seats import Seats

Views = Sequence[Sequence[DeviceView]]


@dataclass(frozen=True, slots=True)
class PreparedCommands:
    """One worker's commands."""

    commands: Sequence[tuple[Command, ...]]
    """The commands of each instruction."""

    fetched_bytes: Sequence[int]
    """The bytes that each instruction fetches from other workers."""

    scratch_bytes: int
    """The scratch of both lanes."""

    flagged: tuple[int, ...]
    """`flagged[i]` is the instruction of flag `i`."""

    flags: int = 0
    """The address of the 32-bit flags, zero at first.

    A kernel sets its flag if an index computed from data is bad or if its update is not finite.
    """

    @property
    def workspace_bytes(self) -> int:
        """Count the bytes besides the arena."""
        return self.scratch_bytes + len(self.flagged) * FLAG_BYTES


NOTHING = PreparedCommands((), (), 0, ())
"""The commands of a worker without instructions."""


def arena_views(
    partitioned: PartitionedGraph, memory: MemoryPlan, bases: Sequence[int]
) -> list[list[DeviceView]]:
    """Return views of all buffers in arenas that start at `bases[worker]`; any number is a valid address."""
    tensors = partitioned.graph.tensors
    return [
        [
            DeviceView.dense(
                base + offset,
                tuple(upper - lower for lower, upper in buffer.region),
                tensors[buffer.tensor].dtype,
            )
            for offset, buffer in zip(offsets, program.buffers, strict=True)
        ]
        for base, offsets, program in zip(bases, memory.offsets, partitioned.programs, strict=True)
    ]


def overflows(graph: Graph, operation: int) -> bool:
    """Tell whether an operation learns from gradients in float16, in which large values are infinite."""
    return graph.learns(graph.operations[operation]) and any(t.dtype == "float16" for t in graph.tensors)


def prepare(
    partitioned: PartitionedGraph, views: Views, worker: int, machine: CudaMachine, seats: Seats
) -> PreparedCommands:
    """Prepare one worker's commands; `views[worker][buffer]` are all workers' buffers.

    `seats` are the machine's workers of all workers. Scratch and flags are allocated together. Raises
    ExecutionError that names the worker and the operation if a kernel cannot be prepared.
    """
    return _Preparation(partitioned, views, worker, machine, seats).run()


class _Preparation:
    def __init__(
        self, partitioned: PartitionedGraph, views: Views, worker: int, machine: CudaMachine, seats: Seats
    ) -> None:
        self._partitioned = partitioned
        self._placed = BufferViews(partitioned, views)
        self._worker = worker
        self._machine = machine
        self._seats = seats

    def run(self) -> PreparedCommands:
        lanes = list(map(lane_of, self._partitioned.programs[self._worker].instructions))
        commands: list[tuple[Command, ...]] = []
        flagged: list[int] = []
        again: list[int] = []
        needs = [0] * len(Lane)
        for index, lane in enumerate(lanes):
            own = DeviceWorkspace()
            commands.append(self._commands(index, own))
            if own.used_bytes or own.flag_count:
                again.append(index)
            needs[lane] = max(needs[lane], own.used_bytes)
            flagged += [index] * own.flag_count
        scratch = sum(needs)
        prepared = PreparedCommands(commands, self._fetched_bytes(), scratch, tuple(flagged))
        if again:
            address = self._machine.allocate(self._seats.number(self._worker), prepared.workspace_bytes)
            flags = address + scratch
            workspace = DeviceWorkspace(address, flags)
            for index in again:
                workspace.restart(address + sum(needs[: lanes[index]]))
                commands[index] = self._commands(index, workspace)
            prepared = replace(prepared, flags=flags)
        return prepared

    def _commands(self, index: int, workspace: DeviceWorkspace) -> tuple[Command, ...]:
        with errors_named(self._partitioned, self._worker, index):
            return self._bound(self._partitioned.programs[self._worker].instructions[index], workspace)

    def _bound(self, instruction: Instruction, workspace: DeviceWorkspace) -> tuple[Command, ...]:
        match instruction:
            case MultiFetch():
                staged, pairs = self._pairs(instruction.target, instruction.pieces, workspace)
                return (*staged, *transfers.fetch(pairs))
            case Reduce():
                parts = [self._pairs(instruction.target, part, workspace) for part in instruction.parts]
                staged = tuple(chain.from_iterable(copies for copies, _ in parts))
                return (*staged, *transfers.reduce(instruction.reducer, [pairs for _, pairs in parts]))
            case Compute():
                finite = overflows(self._partitioned.graph, instruction.operation)
                return compute(
                    self._placed.call(self._worker, instruction), workspace, self._asked, finite=finite
                )
            case _:
                assert_never(instruction)

    def _pairs(
        self, target: int, pieces: tuple[Piece, ...], workspace: DeviceWorkspace
    ) -> tuple[tuple[Command, ...], list[Pair]]:
        """Return the pairs of views to copy; unreachable memory is first copied into scratch."""
        copies: list[Command] = []
        pairs: list[Pair] = []
        for piece in pieces:
            source = self._placed.part(piece.worker, piece.buffer, piece.region)
            if not self._seats.reaches(self._machine, self._worker, piece.worker):
                staged, source = stage(source, workspace)
                copies += staged
            pairs.append((source, self._placed.part(self._worker, target, piece.region)))
        return tuple(copies), pairs

    def _asked(self, command: Convolution) -> int:
        return self._machine.scratch_bytes(self._seats.number(self._worker), command)

    def _fetched_bytes(self) -> list[int]:
        """Count the bytes that each instruction gets from other workers, by its pieces."""
        return [
            sum(
                self._placed.part(piece.worker, piece.buffer, piece.region).nbytes
                for piece in transferred(instruction)
                if piece.worker != self._worker
            )
            for instruction in self._partitioned.programs[self._worker].instructions
        ]
