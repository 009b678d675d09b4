"""Messages: the pieces that one process fetches from another, as a pure function of the programs.

Both ends derive the same messages. All pieces that the workers of one process fetch from those of another
for an operation at a tick are one message. Messages are in the order of (tick, operation, sender, receiver),
and every process sends and receives in this order. So the first message that is not yet received can always
be: what it carries was written at earlier ticks, and all that its two ends do before it is done. No run can
deadlock, even if a send ends only when the message is received.

The bytes of all messages are those that the programs fetch: a region that is fetched twice travels twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from ...programs.clock import transferred
from ...programs.program import Compute, PartitionedGraph, Piece


@dataclass(frozen=True, slots=True)
class CrossingPiece:
    """A piece of a transfer whose source is in another process."""

    worker: int
    """The worker that fetches it."""

    instruction: int
    """The place of the transfer in that worker's list."""

    place: int
    """The place of the piece among those of the transfer, term by term."""

    piece: Piece
    """The source and the region."""

    nbytes: int
    """The size of the piece."""

    needed: int
    """The tick of the transfer."""


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

    pieces: tuple[CrossingPiece, ...]
    """The pieces, those of the widest elements first, so each lies at a multiple of its element's size."""

    @property
    def nbytes(self) -> int:
        """Return the size of the message."""
        return sum(each.nbytes for each in self.pieces)


Grouping = Callable[[PartitionedGraph, Sequence[int]], tuple[ProcessMessage, ...]]
"""Groups the pieces that cross between processes. The second argument is the process of each worker."""


def messages_of(partitioned: PartitionedGraph, processes: Sequence[int]) -> tuple[ProcessMessage, ...]:
    """Return the messages of an iteration in the order in which they are sent and received."""
    grouped: dict[tuple[int, int, int, int], list[CrossingPiece]] = {}
    tensors = partitioned.graph.tensors
    for worker, program in enumerate(partitioned.programs):
        receiver = processes[worker]
        for index, instruction in enumerate(program.instructions):
            if isinstance(instruction, Compute):
                continue
            itemsize = tensors[program.buffers[instruction.target].tensor].itemsize
            for place, piece in enumerate(transferred(instruction)):
                sender = processes[piece.worker]
                if sender != receiver:
                    nbytes = itemsize * prod(upper - lower for lower, upper in piece.region)
                    key = (instruction.tick, instruction.operation, sender, receiver)
                    sent = CrossingPiece(worker, index, place, piece, nbytes, instruction.tick)
                    grouped.setdefault(key, []).append(sent)

    def width(sent: CrossingPiece) -> int:
        held = partitioned.programs[sent.piece.worker].buffers[sent.piece.buffer]
        return -tensors[held.tensor].itemsize

    return tuple(
        ProcessMessage(number, *key, tuple(sorted(grouped[key], key=width)))
        for number, key in enumerate(sorted(grouped))
    )
