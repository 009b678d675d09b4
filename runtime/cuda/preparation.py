"""Prepare a worker's instructions as commands: the NumPy engine's lists, on addresses.

All commands of a lane share scratch, because they run one after the other. Its size is known once every
instruction has been prepared. Instructions that took scratch are then prepared again at its final address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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
    placed: BufferViews[DeviceView],
    worker: int,
    machine: CudaMachine,
    seats: Seats,
    groups: Sequence[Sequence[int]],
) -> PreparedCommands:
    """Prepare one worker's commands on all workers' buffers.

    `seats` are the machine's workers of all workers, `groups` the instructions that are issued together: the
    commands of all are those of the first one. Scratch and flags are allocated together. Raises
    ExecutionError that names the worker and the operation if a kernel cannot be prepared.
    """
    return _Preparation(placed, worker, machine, seats, groups).run()


class _Preparation:
    def __init__(
        self,
        placed: BufferViews[DeviceView],
        worker: int,
        machine: CudaMachine,
        seats: Seats,
        groups: Sequence[Sequence[int]],
    ) -> None:
        self._partitioned = placed.partitioned
        self._placed = placed
        self._worker = worker
        self._machine = machine
        self._seats = seats
        self._groups = groups

    def run(self) -> PreparedCommands:
        instructions = self._partitioned.programs[self._worker].instructions
        lanes = list(map(lane_of, instructions))
        commands: list[tuple[Command, ...]] = [()] * len(instructions)
        flagged: list[int] = []
        again: list[Sequence[int]] = []
        needs = [0] * len(Lane)
        for group in self._groups:
            first, own = group[0], DeviceWorkspace()
            commands[first] = self._commands(group, own)
            if own.used_bytes or own.flag_count:
                again.append(group)
            needs[lanes[first]] = max(needs[lanes[first]], own.used_bytes)
            flagged += [first] * own.flag_count
        scratch = sum(needs)
        prepared = PreparedCommands(commands, self._fetched_bytes(), scratch, tuple(flagged))
        if again:
            address = self._machine.allocate(self._seats.number(self._worker), prepared.workspace_bytes)
            flags = address + scratch
            workspace = DeviceWorkspace(address, flags)
            for group in again:
                workspace.restart(address + sum(needs[: lanes[group[0]]]))
                commands[group[0]] = self._commands(group, workspace)
            prepared = replace(prepared, flags=flags)
        return prepared

    def _commands(self, group: Sequence[int], workspace: DeviceWorkspace) -> tuple[Command, ...]:
        first, *others = group
        instructions = self._partitioned.programs[self._worker].instructions
        with errors_named(self._partitioned, self._worker, first):
            if others:
                return self._transfers([instructions[index] for index in group], workspace)
            return self._bound(instructions[first], workspace)

    def _bound(self, instruction: Instruction, workspace: DeviceWorkspace) -> tuple[Command, ...]:
        match instruction:
            case Compute():
                finite = overflows(self._partitioned.graph, instruction.operation)
                return compute(
                    self._placed.call(self._worker, instruction), workspace, self._asked, finite=finite
                )
            case _:
                return self._transfers([instruction], workspace)

    def _transfers(
        self, instructions: Iterable[Instruction], workspace: DeviceWorkspace
    ) -> tuple[Command, ...]:
        """Return the commands of transfers, of which none touches what another one writes."""
        staged: list[Command] = []
        fetched: list[Pair] = []
        reductions: list[transfers.Reduction] = []
        for instruction in instructions:
            match instruction:
                case MultiFetch():
                    fetched += self._pairs(instruction.target, instruction.pieces, workspace, staged)
                case Reduce():
                    parts = [
                        self._pairs(instruction.target, part, workspace, staged) for part in instruction.parts
                    ]
                    reductions.append((instruction.reducer, parts))
                case _:
                    raise AssertionError("only transfers are issued together")
        return (*staged, *transfers.fetch(fetched), *transfers.reduce_all(reductions))

    def _pairs(
        self, target: int, pieces: tuple[Piece, ...], workspace: DeviceWorkspace, staged: list[Command]
    ) -> list[Pair]:
        """Return the pairs of views to copy; `staged` copies unreachable memory into scratch before that."""
        pairs: list[Pair] = []
        for piece in pieces:
            source = self._placed.part(piece.worker, piece.buffer, piece.region)
            if not self._seats.reaches(self._machine, self._worker, piece.worker):
                copies, source = stage(source, workspace)
                staged += copies
            pairs.append((source, self._placed.part(self._worker, target, piece.region)))
        return pairs

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
