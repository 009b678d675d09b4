"""When instructions run and which buffers they touch: shared by the memory planner and the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import assert_never

from ..errors import ProgramError
from .program import (
    Compute,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
    Reduce,
)


def check_order(program: Program) -> None:
    """Raise ProgramError if a worker's list is not in the order of the clock."""
    ticks = [instruction.tick for instruction in program.instructions]
    if ticks == sorted(ticks):
        return
    for number, (before, after) in enumerate(pairwise(program.instructions)):
        if after.tick < before.tick:
            raise ProgramError(
                f"worker {program.worker}: instruction {number + 1} has tick {after.tick}, but follows one "
                f"with tick {before.tick}; instructions must be in the order of the clock"
            )


def first_ticks(partitioned: PartitionedGraph) -> list[int]:
    """Return the first tick of every operation; that of the next one if no instruction belongs to it."""
    ticks = partitioned.ticks
    firsts = [ticks] * len(partitioned.graph.operations)
    for program in partitioned.programs:
        for instruction in program.instructions:
            if instruction.tick < firsts[instruction.operation]:
                firsts[instruction.operation] = instruction.tick
    return firsts


def operation_at(partitioned: PartitionedGraph, tick: int) -> str:
    """Return the name of an operation that has an instruction at a tick."""
    instructions = (each for program in partitioned.programs for each in program.instructions)
    number = next(each.operation for each in instructions if each.tick == tick)
    return partitioned.graph.operations[number].name


def reads(worker: int, instruction: Instruction) -> list[tuple[int, int]]:
    """List the buffers that an instruction of `worker` reads, as (worker, buffer)."""
    match instruction:
        case Compute(inputs=inputs):
            return [(worker, buffer) for buffer in inputs if buffer is not None]
        case MultiFetch(pieces=pieces):
            return [(piece.worker, piece.buffer) for piece in pieces]
        case Reduce(parts=parts):
            return [(piece.worker, piece.buffer) for part in parts for piece in part]
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
    """Collect, for each worker, the buffers of tensors that live across iterations."""
    lasting: list[set[int]] = [set() for _ in range(partitioned.workers)]
    for tensor, homes in zip(partitioned.graph.tensors, partitioned.homes, strict=True):
        if tensor.role.persistent:
            for worker, buffer in homes:
                lasting[worker].add(buffer)
    return lasting
