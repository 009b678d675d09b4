"""Messages: the pieces that one process fetches from another, as a pure function of the programs.

Both ends derive the same messages: the fewest for the order of the instructions, see `programs.messages`, but
that pieces for operations that learn travel apart, since iterations may leave these out. Messages are in the
order of (tick, operation, sender, receiver), and every process sends and receives in this order. So the first
message that is not yet received can always be: its bytes were written at earlier ticks, and all that its
two ends do before it is done. No run can deadlock, even if a send ends only when the message is received.

The bytes of all messages are those that the programs fetch: a region that is fetched twice travels twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .messages import SentPiece, messages
from .program import Compute, Instruction, MultiFetch, PartitionedGraph, Piece, Program, Reduce

PlaceOfPiece = tuple[int, int, int]
"""The worker and the index of a transfer, and the place of a piece among its pieces, term by term."""


@dataclass(frozen=True, slots=True)
class ProcessMessage:
    """Pieces that travel together from one process to another."""

    number: int
    """The place of the message among all messages of an iteration."""

    tick: int
    """The tick at which it is sent; everything in it was written earlier."""

    operation: int
    """An operation that needs it. If only some of those that do learn, it is one that does not, because the
    messages of operations that learn are left out if an iteration skips updates.
    """

    sender: int
    """The process that holds the pieces."""

    receiver: int
    """The process whose workers need them."""

    pieces: tuple[SentPiece, ...]
    """The pieces, those of the widest elements first, so each lies at a multiple of its element's size."""

    @property
    def nbytes(self) -> int:
        """Return the size of the message."""
        return sum(each.nbytes for each in self.pieces)


def messages_of(partitioned: PartitionedGraph, processes: Sequence[int]) -> tuple[ProcessMessage, ...]:
    """Return the messages of an iteration in the order in which they are sent and received."""
    graph, programs = partitioned.graph, partitioned.programs

    def operation(sent: SentPiece) -> int:
        return programs[sent.worker].instructions[sent.instruction].operation

    def width(sent: SentPiece) -> int:
        held = programs[sent.piece.worker].buffers[sent.piece.buffer]
        return -graph.tensors[held.tensor].itemsize

    found = []
    for message in messages(partitioned, places=processes):
        for learns in (False, True):
            pieces = [p for p in message.pieces if graph.learns(graph.operations[operation(p)]) is learns]
            if pieces:
                first = pieces[0]
                key = (first.needed, operation(first), message.sender, message.reader, learns)
                found.append((key, tuple(sorted(pieces, key=width))))
    return tuple(
        ProcessMessage(number, *key[:4], pieces)
        for number, (key, pieces) in enumerate(sorted(found, key=_key))
    )


def _key(found: tuple[tuple[int, int, int, int, bool], tuple[SentPiece, ...]]) -> tuple[int, ...]:
    return found[0]


def redirected(program: Program, found: Mapping[PlaceOfPiece, Piece], step: int) -> Program:
    """Return a worker's program, in which some pieces are read elsewhere, as when a message has brought them.

    The tick `t` becomes the last of the ticks from `step t` on, so there is time before it for messages.
    """

    def moved(index: int, pieces: Sequence[Piece], start: int = 0) -> tuple[Piece, ...]:
        keys = ((program.worker, index, place) for place in range(start, start + len(pieces)))
        return tuple(found.get(key, piece) for key, piece in zip(keys, pieces, strict=True))

    instructions: list[Instruction] = []
    for index, instruction in enumerate(program.instructions):
        tick = step * instruction.tick + step - 1
        match instruction:
            case Compute():
                instructions.append(replace(instruction, tick=tick))
            case MultiFetch(pieces=pieces):
                instructions.append(replace(instruction, pieces=moved(index, pieces), tick=tick))
            case Reduce(parts=parts):
                starts = np.cumsum([0, *map(len, parts)]).tolist()
                terms = tuple(moved(index, part, start) for part, start in zip(parts, starts, strict=False))
                instructions.append(replace(instruction, parts=terms, tick=tick))
    return replace(program, instructions=tuple(instructions))
