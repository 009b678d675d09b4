"""Programs, which lowering makes and engines run: one instruction list per worker.

All regions are in the coordinates of the whole tensor. Every instruction has a tick of a logical clock, and
every worker's list is in the order of the clock. An instruction depends only on instructions at earlier
ticks; these are the control dependencies of Tofu, section 6. A worker that takes no part in an operation has
no instruction for it.

A worker runs two lanes next to each other: its computations in one, its transfers in the other. Each lane is
in the order of the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import prod
from typing import assert_never

from ..analyzer.indices.region import Region
from ..dataflow.graph import Graph
from ..errors import ProgramError
from ..support.checked_argument import is_count, require_kind
from ..support.wording import alternatives, counted
from ..tdl.ast import AnyReducer


class BufferKind(StrEnum):
    SHARD = "shard"
    """the part of a tensor that the worker owns"""
    FETCHED = "fetched"
    """an input region assembled for one operation"""
    COPY = "copy"
    """a part of a tensor on its way to the workers that hold it"""
    PARTIAL = "partial"
    """an output region that one operation produced and its owners collect"""
    SENT = "sent"
    """a message that a process has packed and sent to another one"""
    CARRIED = "carried"
    """a message that has come to the other process"""
    RECEIVED = "received"
    """a message that the other process has taken out"""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of a worker's memory that holds a region of a tensor, row-major."""

    index: int
    """The buffer's number on its worker."""

    tensor: int
    """The tensor's number in the graph."""

    region: Region
    """The part of the tensor that the buffer holds."""

    kind: BufferKind
    """The purpose of the buffer."""

    nbytes: int
    """The size of the buffer."""


MESSAGES = frozenset((BufferKind.SENT, BufferKind.CARRIED, BufferKind.RECEIVED))
"""The kinds of buffers that are messages between processes, see `process_programs`."""

Held = tuple[int, int]
"""A worker and one of its buffers."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A region of a tensor, read from a buffer."""

    worker: int
    """The worker that holds the buffer."""

    buffer: int
    """The buffer's number on that worker."""

    region: Region
    """The region to read, in the tensor's coordinates."""


@dataclass(frozen=True, slots=True)
class MultiFetch:
    """Assemble a buffer's region from disjoint pieces (Tofu, section 6)."""

    operation: int
    """The operation that needs the region."""

    target: int
    """The buffer to fill."""

    pieces: tuple[Piece, ...]
    """Where to read each part of the region."""

    tick: int
    """When it runs, by the clock of the programs."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Run an operation on a box of its iteration space."""

    operation: int
    """The operation's number in the graph."""

    box: Region
    """One interval for each variable of the bound operator."""

    inputs: tuple[int | None, ...]
    """The buffers, in the order of the description's tensors; None for a tensor that is not read."""

    input_regions: tuple[Region | None, ...]
    """The regions that are read, likewise."""

    outputs: tuple[int, ...]
    """Buffers whose regions are exactly the output regions of the box."""

    tick: int
    """When it runs, by the clock of the programs."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine partial results into a buffer, in a fixed order that is the same on every run."""

    operation: int
    """The operation that computed the partial results."""

    target: int
    """The buffer to fill."""

    reducer: AnyReducer
    """How to combine two terms."""

    parts: tuple[tuple[Piece, ...], ...]
    """For each term of the reduction, disjoint pieces that cover the target."""

    tick: int
    """When it runs, by the clock of the programs."""


Instruction = MultiFetch | Compute | Reduce


class Lane(IntEnum):
    """The lists that a worker runs next to each other."""

    COMPUTE = 0
    TRANSFER = 1


def lane_of(instruction: Instruction) -> Lane:
    """Return the lane of its worker in which an instruction runs."""
    return Lane.COMPUTE if isinstance(instruction, Compute) else Lane.TRANSFER


@dataclass(frozen=True, slots=True)
class Program:
    """One worker's buffers and instructions."""

    worker: int
    """The worker's number."""

    buffers: tuple[Buffer, ...]
    """The worker's buffers, by number."""

    instructions: tuple[Instruction, ...]
    """The instructions of both lanes, in the order of the clock."""


@dataclass(frozen=True, slots=True)
class PartitionedGraph:
    """One program for each worker of a graph."""

    graph: Graph
    """The graph that the programs compute."""

    workers: int
    """The number of workers."""

    programs: tuple[Program, ...]
    """Each worker's program."""

    homes: tuple[tuple[Held, ...], ...]
    """`homes[tensor]` are the buffers that hold the tensor between operations. Aliases share their
    tensor's.
    """

    planned_bytes: int
    """The bytes that cross between workers in one iteration."""

    @property
    def ticks(self) -> int:
        """Return the number of ticks of the clock in one iteration."""
        last = [program.instructions[-1].tick for program in self.programs if program.instructions]
        return max(last, default=-1) + 1

    def __repr__(self) -> str:
        return f"<{self.graph!r} on {counted(self.workers, 'worker')}: {self.planned_bytes:,} bytes planned>"

    def __str__(self) -> str:
        return self.text()

    def text(self, worker: int | None = None, operation: str | None = None) -> str:
        """Write the programs in words, one instruction per line, of one worker and operation or of all.

        Raises ProgramError if the worker or the operation does not exist.
        """
        self.require(worker, operation)
        names = [each.name for each in self.graph.operations]
        over = counted(self.workers, "worker")
        lines = [f"{self.graph.name} on {over}: {self.planned_bytes:,} bytes fetched in an iteration"]
        for program in self.programs if worker is None else [self.programs[worker]]:
            shown = [i for i in program.instructions if operation in (None, names[i.operation])]
            lines += ["", f"worker {program.worker}, {counted(len(shown), 'instruction')}"]
            lines += [f"  {self._in_words(program, instruction)}" for instruction in shown]
        return "\n".join(lines)

    def require(self, worker: int | None, operation: str | None) -> None:
        """Raise ProgramError if the worker or the operation does not exist; None stands for all."""
        names = [each.name for each in self.graph.operations]
        if worker is not None and not (is_count(worker) and worker < self.workers):
            raise ProgramError(f"there is no worker {worker!r}; workers are numbered 0 to {self.workers - 1}")
        if operation is not None and operation not in names:
            raise ProgramError(f"there is no operation {operation!r}{alternatives(str(operation), names)}")

    def _in_words(self, program: Program, instruction: Instruction) -> str:
        """Write one instruction: its verb, its operation, the regions, and the bytes that cross."""
        name = self.graph.operations[instruction.operation].name
        match instruction:
            case Compute(box=box, inputs=inputs, input_regions=regions, outputs=outputs):
                variables = self.graph.operations[instruction.operation].bound.variables
                over = ", ".join(f"{v}={low}:{up}" for v, (low, up) in zip(variables, box, strict=True))
                taken = [
                    self._named(program.buffers[buffer].tensor, region)
                    for buffer, region in zip(inputs, regions, strict=True)
                    if buffer is not None and region is not None
                ]
                made = [self._held(program, buffer) for buffer in outputs]
                reads = f" from {', '.join(taken)}" if taken else ""
                return f"compute {name} over {over or 'one value'}{reads} into {', '.join(made)}"
            case MultiFetch(target=target, pieces=pieces):
                verb = "fetch" if program.buffers[target].kind is BufferKind.FETCHED else "collect"
                sources = self._pieces(program, target, pieces)
                return f"{verb} {self._held(program, target)} for {name}: {sources}"
            case Reduce(target=target, reducer=reducer, parts=parts):
                terms = "; ".join(self._pieces(program, target, part) for part in parts)
                return f"reduce {self._held(program, target)} for {name}: {reducer} of {terms}"
            case _:
                assert_never(instruction)

    def _named(self, tensor: int, region: Region) -> str:
        return f"{self.graph.tensors[tensor].name}{region_text(region)}"

    def _held(self, program: Program, buffer: int) -> str:
        """Name a buffer's contents, and say if they are a partial result."""
        found = program.buffers[buffer]
        partial = " (partial)" if found.kind is BufferKind.PARTIAL else ""
        return self._named(found.tensor, found.region) + partial

    def _pieces(self, program: Program, target: int, pieces: Sequence[Piece]) -> str:
        """Name every piece's holder and region, and the bytes that cross."""
        itemsize = self.graph.tensors[program.buffers[target].tensor].itemsize
        texts = []
        for piece in pieces:
            nbytes = itemsize * prod(upper - lower for lower, upper in piece.region)
            own = piece.worker == program.worker
            texts.append(
                f"own {region_text(piece.region)}"
                if own
                else f"worker {piece.worker} {region_text(piece.region)} {nbytes:,} bytes"
            )
        return ", ".join(texts)


def region_text(region: Region) -> str:
    """Write a region as an index: `[0:16, 3:4]`."""
    return f"[{', '.join(f'{lower}:{upper}' for lower, upper in region)}]"


def require_program(value: object) -> None:
    """Raise ProgramError if the value is not a partitioned graph, for example a graph or a plan."""
    require_kind(value, PartitionedGraph, "call tofu.lower(graph, plan)", ProgramError)
