"""The messages of programs in words, one a line."""

from __future__ import annotations

from collections.abc import Iterator

from ..programs.messages import START, Message, count_messages, messages
from ..programs.program import PartitionedGraph, region_text
from ..support.wording import counted


def message_lines(program: PartitionedGraph, worker: int | None, operation: str | None) -> Iterator[str]:
    """Yield the counts, and each message that a worker reads for an operation; all of them if both are None.

    Raises ProgramError if the worker or the operation does not exist.
    """
    program.require(worker, operation)
    counts = count_messages(program)
    yield (
        f"{counted(counts.fewest, 'message')} at least, {counts.at_once:,} if pieces that are needed at the "
        f"same tick travel together, {counts.separate:,} if each transfer has its own"
    )
    names = [each.name for each in program.graph.operations]
    for message in messages(program):
        used = [
            names[program.programs[message.reader].instructions[sent.instruction].operation]
            for sent in message.pieces
        ]
        if worker in (None, message.reader) and (operation is None or operation in used):
            yield _line(program, message, used)


def _line(program: PartitionedGraph, message: Message, used: list[str]) -> str:
    since = "from the start" if message.after == START else f"after tick {message.after}"
    pieces = []
    for sent, name in zip(message.pieces, used, strict=True):
        buffer = program.programs[message.sender].buffers[sent.piece.buffer]
        tensor = program.graph.tensors[buffer.tensor].name
        pieces.append(f"{tensor}{region_text(sent.piece.region)} for {name}")
    return (
        f"  worker {message.sender} to {message.reader}, {since}, before tick {message.before}, "
        f"{message.nbytes:,} bytes: {', '.join(pieces)}"
    )
