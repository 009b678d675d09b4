"""The programs of all processes of a run at once, with their messages, as the simulator takes them.

Each message is three transfers. A *sender* of the process that has the pieces packs and sends them, one
message after the other. A *wire* between two processes carries messages in their order. A *receiver* of the
other process takes them out one after the other. These helpers are numbered after the workers, and transfers
of workers read what receivers have. The tick `t` of the programs becomes `4 t + 3`: messages that are needed
at `t` are sent, carried and received before.

These programs are not for engines: they say what comes after what, and how many bytes move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .process_messages import PlaceOfPiece, ProcessMessage, messages_of, redirected
from .program import Buffer, BufferKind, Held, MultiFetch, PartitionedGraph, Piece, Program

STEP = 4
"""The ticks for each tick of the programs."""


@dataclass(frozen=True, slots=True)
class Helper:
    """Moves messages, one after the other."""

    part: BufferKind
    """The part of their way: sent, carried or received."""

    process: int
    """The process that sends, or that receives; a wire has the one that receives."""

    other: int
    """For a wire the process that sends; else the same process."""


@dataclass(frozen=True, slots=True)
class ProcessPrograms:
    """The programs of all workers, with messages between processes."""

    partitioned: PartitionedGraph
    """The programs of workers, then those of helpers."""

    places: tuple[int, ...]
    """The process of each worker, and of each helper."""

    helpers: tuple[Helper, ...]
    """The helpers, in their order."""

    sends: dict[tuple[int, int, int], list[Held]]
    """By worker and index of a transfer, and by process, where messages are sent that it needs from there."""

    @property
    def workers(self) -> int:
        """Return the number of workers without helpers."""
        return self.partitioned.workers - len(self.helpers)

    def helper(self, worker: int) -> Helper | None:
        """Return the helper of this number; None for a worker."""
        return self.helpers[worker - self.workers] if worker >= self.workers else None


def process_programs(partitioned: PartitionedGraph, places: Sequence[int]) -> ProcessPrograms:
    """Return the programs of processes; `places` has the process of each worker."""
    made = _Messages(partitioned)
    for message in messages_of(partitioned, places):
        made.add(message)
    programs = [redirected(program, made.found, STEP) for program in partitioned.programs]
    joint = replace(
        partitioned,
        workers=partitioned.workers + len(made.helpers),
        programs=(*programs, *made.programs()),
    )
    processes = (*places, *(helper.process for helper in made.helpers))
    return ProcessPrograms(joint, processes, tuple(made.helpers), made.sends)


class _Messages:
    """Collects the transfers of helpers."""

    def __init__(self, partitioned: PartitionedGraph) -> None:
        self._partitioned = partitioned
        self._buffers: list[list[Buffer]] = []
        self._instructions: list[list[MultiFetch]] = []
        self.helpers: dict[Helper, int] = {}
        """The number of each helper."""
        self.found: dict[PlaceOfPiece, Piece] = {}
        """Where the pieces of transfers are when their message has been received."""
        self.sends: dict[tuple[int, int, int], list[Held]] = {}

    def add(self, message: ProcessMessage) -> None:
        """Add the three transfers of a message."""
        ends = message.sender, message.receiver
        pieces = tuple(sent.piece for sent in message.pieces)
        sent = self._transfer(Helper(BufferKind.SENT, ends[0], ends[0]), message, pieces, 0)
        carried = self._transfer(Helper(BufferKind.CARRIED, ends[1], ends[0]), message, (_whole(sent),), 1)
        received = self._transfer(
            Helper(BufferKind.RECEIVED, ends[1], ends[1]), message, (_whole(carried),), 2
        )
        place = sent[0], len(self._instructions[sent[0] - self._partitioned.workers]) - 1
        for each in message.pieces:
            key = each.worker, each.instruction, each.place
            self.found[key] = replace(each.piece, worker=received[0], buffer=received[1])
            self.sends.setdefault((each.worker, each.instruction, message.sender), []).append(place)

    def programs(self) -> list[Program]:
        """Return the program of each helper, in the order of their numbers."""
        listed = zip(self._buffers, self._instructions, strict=True)
        return [
            Program(self._partitioned.workers + number, tuple(buffers), tuple(instructions))
            for number, (buffers, instructions) in enumerate(listed)
        ]

    def _transfer(
        self, helper: Helper, message: ProcessMessage, pieces: tuple[Piece, ...], tick: int
    ) -> Held:
        """Add a transfer of a helper, and return what it fills."""
        number = self.helpers.setdefault(helper, len(self.helpers))
        if number == len(self._buffers):
            self._buffers.append([])
            self._instructions.append([])
        buffer = len(self._buffers[number])
        self._buffers[number].append(Buffer(buffer, 0, (), helper.part, message.nbytes))
        at = STEP * message.tick + tick
        self._instructions[number].append(MultiFetch(message.operation, buffer, pieces, at))
        return self._partitioned.workers + number, buffer


def _whole(held: Held) -> Piece:
    """Return all of a message, read by who holds it."""
    return Piece(*held, ())
