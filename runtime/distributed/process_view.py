"""The programs of one process: those of its workers, and a stand-in for every other process.

Stand-ins make the messages of a process ordinary instructions, so that the schedule finds their waits, one
engine runs them, and `check_memory` checks both. The stand-in of a process has

* a buffer for every piece that is received from it. A `Compute` without inputs stands for the receipt of a
  message, and writes the buffers of its pieces;
* a `MultiFetch` for every message that is sent to it, which reads the pieces. Its target is empty.

So a stand-in receives in one lane and sends in the other. The tick `t` of the programs becomes `2 t + 1`.
Messages are sent and received at `2 t`: their bytes were written before. The memory for receipts is
planned like an arena. A receipt may run up to `AHEAD` ticks before its message is needed, as far as no memory
is taken by others.

Assumes: programs in the order of the clock, messages in the order of `messages_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...programs.arena import plan_arena
from ...programs.memory import MemoryPlan
from ...programs.process_messages import ProcessMessage, redirected
from ...programs.program import (
    Buffer,
    BufferKind,
    Compute,
    Instruction,
    MultiFetch,
    PartitionedGraph,
    Piece,
    Program,
)

PlacedMessage = tuple[tuple[int, int], ProcessMessage]
"""The stand-in and index of the instruction that stands for a message, and the message."""

AHEAD = 4
"""The ticks by which the memory of a message is free for it before it is needed."""


@dataclass(frozen=True, slots=True)
class ProcessView:
    """The programs that one process runs, with the memory for receipts."""

    partitioned: PartitionedGraph
    """The programs of all workers, empty for those of other processes, then those of all stand-ins."""

    memory: MemoryPlan
    """The offsets and arenas of workers and stand-ins."""

    local: tuple[int, ...]
    """The workers of this process."""

    stand_ins: tuple[int, ...]
    """The numbers of the stand-ins."""

    messages: tuple[tuple[ProcessMessage, ...], ...]
    """For each stand-in, the message of each of its instructions."""

    def sent(self) -> list[PlacedMessage]:
        """List the messages that this process sends, in their order."""
        return self._of(MultiFetch)

    def received(self) -> list[PlacedMessage]:
        """List the messages that this process receives, in their order."""
        return self._of(Compute)

    def place(self, stand_in: int, index: int) -> str:
        """Describe the message of an instruction, for errors."""
        message = self.messages[stand_in - self.stand_ins[0]][index]
        operation = self.partitioned.graph.operations[message.operation].name
        return (
            f"message {message.number} of operation '{operation}' from process {message.sender} "
            f"to {message.receiver}"
        )

    def offset(self, place: tuple[int, int]) -> int:
        """Return where a received message lies in the memory of its stand-in."""
        stand_in, index = place
        receipt = self.partitioned.programs[stand_in].instructions[index]
        assert isinstance(receipt, Compute)
        return self.memory.offsets[stand_in][receipt.outputs[0]]

    def _of(self, kind: type[Instruction]) -> list[PlacedMessage]:
        found = [
            ((stand_in, index), message)
            for stand_in, messages in zip(self.stand_ins, self.messages, strict=True)
            for index, message in enumerate(messages)
            if isinstance(self.partitioned.programs[stand_in].instructions[index], kind)
        ]
        return sorted(found, key=lambda each: each[1].number)


def process_view(
    partitioned: PartitionedGraph,
    memory: MemoryPlan,
    messages: Sequence[ProcessMessage],
    processes: Sequence[int],
    me: int,
) -> ProcessView:
    """Return the programs of process `me`. `processes` has the process of each worker."""
    count = max(processes) + 1
    stand_ins = [_StandIn(partitioned, partitioned.workers + process) for process in range(count)]
    for message in messages:
        if message.receiver == me:
            stand_ins[message.sender].receive(message)
        elif message.sender == me:
            stand_ins[message.receiver].send(message)
    found: dict[tuple[int, int, int], Piece] = {}
    for stand_in in stand_ins:
        found.update(stand_in.found)
    local = tuple(worker for worker, process in enumerate(processes) if process == me)
    programs = [
        redirected(program, found, step=2) if program.worker in local else Program(program.worker, (), ())
        for program in partitioned.programs
    ]
    finished = [stand_in.finish() for stand_in in stand_ins]
    view = replace(
        partitioned,
        workers=partitioned.workers + count,
        programs=(*programs, *(program for program, _, _ in finished)),
        homes=tuple(tuple(held for held in homes if held[0] in local) for homes in partitioned.homes),
    )
    offsets = [memory.offsets[w] if w in local else () for w in range(partitioned.workers)]
    arenas = [memory.arena_bytes[w] if w in local else 0 for w in range(partitioned.workers)]
    placed = replace(
        memory,
        offsets=(*offsets, *(places for _, places, _ in finished)),
        arena_bytes=(*arenas, *(nbytes for _, _, nbytes in finished)),
    )
    listed = tuple(tuple(stand_in.messages) for stand_in in stand_ins)
    numbers = tuple(range(partitioned.workers, view.workers))
    return ProcessView(view, placed, local, numbers, listed)


class _StandIn:
    """Collects the buffers and instructions of a stand-in, message by message in their order."""

    def __init__(self, partitioned: PartitionedGraph, worker: int) -> None:
        self._partitioned = partitioned
        self._worker = worker
        self._buffers: list[Buffer] = []
        self._empty: int | None = None
        self._instructions: list[tuple[Instruction, ProcessMessage]] = []
        self._received: list[tuple[ProcessMessage, int]] = []
        self.found: dict[tuple[int, int, int], Piece] = {}
        """By worker, instruction and place, where a piece is after its receipt."""

    @property
    def messages(self) -> list[ProcessMessage]:
        """Return the message of each instruction."""
        return [message for _, message in self._instructions]

    def receive(self, message: ProcessMessage) -> None:
        """Add the receipt of a message."""
        self._received.append((message, len(self._buffers)))
        outputs = []
        for sent in message.pieces:
            source = self._partitioned.programs[sent.piece.worker].buffers[sent.piece.buffer]
            buffer = len(self._buffers)
            self._buffers.append(
                Buffer(buffer, source.tensor, sent.piece.region, BufferKind.COPY, sent.nbytes)
            )
            key = (sent.worker, sent.instruction, sent.place)
            self.found[key] = Piece(self._worker, buffer, sent.piece.region)
            outputs.append(buffer)
        unread = (None,) * len(self._partitioned.graph.operations[message.operation].inputs)
        receipt = Compute(message.operation, (), unread, unread, tuple(outputs), 2 * message.tick)
        self._instructions.append((receipt, message))

    def send(self, message: ProcessMessage) -> None:
        """Add the sending of a message."""
        pieces = tuple(sent.piece for sent in message.pieces)
        sending = MultiFetch(message.operation, self._empty_buffer(), pieces, 2 * message.tick)
        self._instructions.append((sending, message))

    def finish(self) -> tuple[Program, tuple[int, ...], int]:
        """Return the program, the offsets of its buffers and the bytes for receipts."""
        sizes = np.array([message.nbytes for message, _ in self._received], np.int64)
        births = np.array([2 * max(message.tick - AHEAD, 0) for message, _ in self._received], np.int64)
        last = [2 * max(sent.needed for sent in message.pieces) + 1 for message, _ in self._received]
        arena = plan_arena(sizes, births, np.array(last, np.int64), np.arange(len(sizes)))
        offsets = [0] * len(self._buffers)
        for (message, first), start in zip(self._received, arena.offsets, strict=True):
            for buffer, sent in enumerate(message.pieces, first):
                offsets[buffer] = start
                start += sent.nbytes
        self._instructions.sort(key=lambda each: each[0].tick)
        instructions = tuple(instruction for instruction, _ in self._instructions)
        return Program(self._worker, tuple(self._buffers), instructions), tuple(offsets), arena.nbytes

    def _empty_buffer(self) -> int:
        """Return the number of a buffer without elements."""
        if self._empty is None:
            self._empty = len(self._buffers)
            self._buffers.append(Buffer(self._empty, 0, _nothing(self._partitioned), BufferKind.COPY, 0))
        return self._empty


def _nothing(partitioned: PartitionedGraph) -> tuple[tuple[int, int], ...]:
    """Return a region of the first tensor without elements."""
    return ((0, 0),) * max(1, len(partitioned.graph.tensors[0].shape))
