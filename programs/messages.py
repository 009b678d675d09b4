"""Messages: pieces that one worker fetches from another, and which of them travel together.

    variables     the tick at which each piece travels
    objective     the fewest messages of every pair of workers; pieces that travel at one tick are one message
    constraints   a piece travels after the tick that writes it, not after the tick that first needs it, and
                  at most `ahead` ticks before that

So every piece has an interval of ticks, and messages are points that stab all intervals. Visiting pieces by
the ticks at which they are needed, and opening a message only when no open one can take a piece, is exact.
Bytes do not change: a region that is fetched twice travels twice.

Both ends derive the same messages from the programs. Those of a pair are in the order in which they are
needed, each at a tick of its own, so they can be sent in that order. Whoever sends each message at the tick
at which it is needed cannot deadlock: its bytes are written at earlier ticks.

Implemented in: `_intervals`, `_stab`. Assumes: programs in the order of the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from math import prod

from .clock import transferred, writes
from .program import Compute, Held, PartitionedGraph, Piece

START = -1
"""The tick at which everything is written that an iteration finds."""

Pair = tuple[int, int]
"""The worker, or the process, that sends, and the one that reads."""


@dataclass(frozen=True, slots=True)
class SentPiece:
    """A piece of a transfer that comes from elsewhere."""

    worker: int
    """The worker whose transfer it is."""

    instruction: int
    """The place of the transfer in that worker's list."""

    place: int
    """The place of the piece among those of the transfer, term by term."""

    piece: Piece
    """Where it is read, and which region."""

    nbytes: int
    """Its size."""

    written: int
    """The tick at which its buffer was written last; `START` if that was before the iteration."""

    needed: int
    """The tick of the transfer."""


@dataclass(frozen=True, slots=True)
class Message:
    """Pieces that travel together from one worker to another."""

    sender: int
    """The worker, or the process, that holds the pieces."""

    reader: int
    """The one whose transfers need them."""

    pieces: tuple[SentPiece, ...]
    """The pieces, in the order of the transfers that need them."""

    @property
    def after(self) -> int:
        """The tick after which it may be sent: the last one that writes a piece of it."""
        return max(each.written for each in self.pieces)

    @property
    def before(self) -> int:
        """The tick at which it has to be there: that of the first transfer that needs a piece of it."""
        return self.pieces[0].needed

    @property
    def nbytes(self) -> int:
        """Its size."""
        return sum(each.nbytes for each in self.pieces)


@dataclass(frozen=True, slots=True)
class Messages:
    """All messages of an iteration."""

    of: Mapping[Pair, tuple[Message, ...]]
    """For each pair its messages, in the order in which they are needed."""

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(map(len, self.of.values()))

    def __iter__(self) -> Iterator[Message]:
        for found in self.of.values():
            yield from found


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """The number of messages of an iteration, by how far pieces travel together."""

    separate: int
    """One for each transfer and each worker that it reads from."""

    at_once: int
    """One for each pair and each tick at which pieces are needed."""

    fewest: int
    """The fewest that the order of instructions allows."""


def messages(
    partitioned: PartitionedGraph, ahead: int | None = None, places: Sequence[int] | None = None
) -> Messages:
    """Return the fewest messages for the order of the instructions, between workers.

    If `places` has the process of each worker, they are between processes.

    Pieces travel at most `ahead` ticks before they are needed: with 0, those that are needed at the same tick
    travel together; with None, as early as they are written.
    """
    return _grouped(_sent_by_pair(partitioned, places), ahead)


def count_messages(partitioned: PartitionedGraph) -> MessageCounts:
    """Count messages by how far pieces travel together."""
    separate = 0
    for program in partitioned.programs:
        for instruction in program.instructions:
            senders = {piece.worker for piece in transferred(instruction)}
            separate += len(senders - {program.worker})
    sent = _sent_by_pair(partitioned)
    return MessageCounts(separate, _grouped(sent, 0).count, _grouped(sent, None).count)


def _sent_by_pair(
    partitioned: PartitionedGraph, places: Sequence[int] | None = None
) -> dict[Pair, list[SentPiece]]:
    """Return what every pair of workers, or of processes at `places`, sends, in the order of the clock."""
    at = range(partitioned.workers) if places is None else places
    by_pair: dict[Pair, list[SentPiece]] = {}
    for sent in _intervals(partitioned):
        if at[sent.piece.worker] != at[sent.worker]:
            by_pair.setdefault((at[sent.piece.worker], at[sent.worker]), []).append(sent)
    return by_pair


def _grouped(by_pair: Mapping[Pair, list[SentPiece]], ahead: int | None) -> Messages:
    """Return the fewest messages for the pieces of each pair."""
    return Messages({pair: tuple(_stab(pair, by_pair[pair], ahead)) for pair in sorted(by_pair)})


def _intervals(partitioned: PartitionedGraph) -> Iterator[SentPiece]:
    """Yield every piece that comes from another worker, in the order of the clock."""
    written: dict[Held, int] = {}
    listed = (
        [(each.tick, program.worker, index) for index, each in enumerate(program.instructions)]
        for program in partitioned.programs
    )
    tensors = partitioned.graph.tensors
    for tick, worker, index in merge(*listed):
        program = partitioned.programs[worker]
        instruction = program.instructions[index]
        if not isinstance(instruction, Compute):
            itemsize = tensors[program.buffers[instruction.target].tensor].itemsize
            for place, piece in enumerate(transferred(instruction)):
                if piece.worker != worker:
                    nbytes = itemsize * prod(upper - lower for lower, upper in piece.region)
                    since = written.get((piece.worker, piece.buffer), START)
                    yield SentPiece(worker, index, place, piece, nbytes, since, tick)
        for buffer in writes(instruction):
            written[worker, buffer] = tick


def _stab(pair: Pair, pieces: list[SentPiece], ahead: int | None) -> Iterator[Message]:
    """Yield the fewest messages for pieces in the order in which they are needed."""
    together: list[SentPiece] = []
    for sent in pieces:
        first = sent.written + 1 if ahead is None else max(sent.written + 1, sent.needed - ahead)
        if together and first > together[0].needed:
            yield Message(*pair, tuple(together))
            together = []
        together.append(sent)
    if together:
        yield Message(*pair, tuple(together))
