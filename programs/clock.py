"""When instructions run and which buffers they touch: shared by the memory planner and the schedule.

Time is a logical clock, three ticks for every operation of the graph: all workers' fetches for it, its
computations, the collection of its outputs. These are the control dependencies of Tofu, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import assert_never

from ..errors import ProgramError
from .program import (
    BufferKind,
    Compute,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
    Reduce,
)


class Position(IntEnum):
    FETCH = 0
    COMPUTE = 1
    COLLECT = 2


TICKS_PER_OPERATION = len(Position)


def tick(program: Program, instruction: Instruction) -> int:
    """Return the clock's value when `instruction` runs."""
    match instruction:
        case Compute():
            position = Position.COMPUTE
        case MultiFetch():
            fetches = program.buffers[instruction.target].kind is BufferKind.FETCHED
            position = Position.FETCH if fetches else Position.COLLECT
        case Reduce():
            position = Position.COLLECT
        case _:
            assert_never(instruction)
    return instruction.operation * TICKS_PER_OPERATION + position


def ticks(program: Program) -> list[int]:
    """Return every instruction's tick. Raises ProgramError if a worker's list leaves the graph's order."""
    values = [tick(program, instruction) for instruction in program.instructions]
    for number, (before, after) in enumerate(pairwise(values)):
        if after < before:
            raise ProgramError(
                f"worker {program.worker}: instruction {number + 1} belongs to operation "
                f"{after // TICKS_PER_OPERATION}, but follows one of operation "
                f"{before // TICKS_PER_OPERATION}; instructions must "
                "follow the order fetch, compute, collect of the graph's operations"
            )
    return values


def reads(worker: int, instruction: Instruction) -> list[tuple[int, int]]:
    """List the buffers that an instruction of `worker` reads, as (worker, buffer)."""
    match instruction:
        case Compute(inputs=inputs):
            return [(worker, buffer) for buffer in inputs if buffer is not None]
        case MultiFetch() | Reduce():
            return [(piece.worker, piece.buffer) for piece in transferred(instruction)]
        case _:
            assert_never(instruction)


def transferred(instruction: Instruction) -> Sequence[Piece]:
    """Return the pieces that an instruction fetches or combines; none if it computes."""
    match instruction:
        case Compute():
            return ()
        case MultiFetch(pieces=pieces):
            return pieces
        case Reduce(parts=parts):
            return [piece for part in parts for piece in part]
        case _:
            assert_never(instruction)


def writes(instruction: Instruction) -> tuple[int, ...]:
    """Return the buffers that an instruction writes; all belong to its worker."""
    match instruction:
        case Compute():
            return instruction.outputs
        case MultiFetch() | Reduce():
            return (instruction.target,)
        case _:
            assert_never(instruction)


def lasting_buffers(partitioned: PartitionedGraph) -> list[set[int]]:
    """Collect, for each worker, the shards of tensors that live across iterations."""
    lasting: list[set[int]] = [set() for _ in range(partitioned.workers)]
    for tensor, shards in zip(partitioned.graph.tensors, partitioned.shards, strict=True):
        if tensor.role.persistent:
            for worker, buffer in enumerate(shards):
                if buffer >= 0:
                    lasting[worker].add(buffer)
    return lasting
