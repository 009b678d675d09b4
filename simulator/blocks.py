"""The instructions of one operation, made from its tasks and from what workers hold, as one list of integers.

A block has what `lower` makes for the operation: for each task the inputs that its worker lacks (transfers),
the kernel, and, for holdings that no task computes in place, the transfers that collect or reduce them. An
instruction begins, does its *legs* (its kernel, or a message from each other worker that it reads from), and
finishes.

Instructions are in the order of the clock, so their numbers and those of their legs depend on nothing but the
operation, its tasks and the holdings. Other operations are named by the versions of tensors that
join them: a block says which of its instructions read or write which holding of which version that the
operation touches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..support.compiled import Numbers, plain

# The places of a block's integers. Those of `LEGS` and `COUNT` are numbers, the others lead to lists.
COUNT, LEGS = 0, 1
"""The numbers of instructions and of legs."""
BEGIN, FINISH = 2, 3
"""The time that each instruction takes before its legs, and after them."""
LEG_FIRSTS, LEG_TIME, LEG_WAY, LEG_OWNER = 4, 5, 6, 7
"""The first leg of each instruction, and of each leg its time, its way and its instruction."""
NEED_FIRSTS, FOLLOW_FIRSTS = 8, 9
"""For each instruction, where those of the block begin that it needs, and those that need it."""
READ_FIRSTS, WRITE_FIRSTS = 10, 11
"""For each instruction, where the uses begin that it reads, and those that it writes."""
BEFORE, AFTER = 12, 13
"""The block's instruction before and after each one with the same runner; -1 if there is none."""
RUNNERS, RUNNER_ENDS, RUNNER = 14, 15, 16
"""The number of runners; for each the runner, its first and its last instruction; and all runners."""
USES = 17
"""From here on, for each version: where the first reader of each holding is, and the writers of all holdings;
0 if the operation does not make the version.
"""


# The places of its notes, which only time lines need.
WORKERS, TRANSFERS, TIME_SOURCES = 0, 1, 2
"""For each instruction its worker, whether it is a transfer, and the source of its time."""
SENDERS, MESSAGE_BYTES = 3, 4
"""The worker that each message comes from, and its bytes."""
NOTES = 5
"""The number of these lists, which follow each other."""


@dataclass(frozen=True, slots=True, eq=False)
class OperationBlock:
    """The instructions of one operation."""

    words: Numbers
    """The block as loops read it."""

    notes: Numbers
    """The lists for time lines."""

    count: int
    """The number of instructions."""

    legs: int
    """The number of legs."""

    moved_bytes: int
    """The bytes of all messages."""

    def note(self, which: int) -> list[int]:
        """Return a list of the notes."""
        begin, end = self.notes[which], self.notes[which + 1]
        return plain(self.notes[begin:end])

    def occupied(self) -> Iterator[tuple[int | None, int, int]]:
        """Yield of each leg the worker if it is a computation, its way or -1, and its time."""
        words = plain(self.words)
        workers, transfers = self.note(WORKERS), self.note(TRANSFERS)
        for leg in range(self.legs):
            owner = words[words[LEG_OWNER] + leg]
            worker = None if transfers[owner] else workers[owner]
            yield worker, words[words[LEG_WAY] + leg], words[words[LEG_TIME] + leg]

    def writers(self, version: int) -> list[int]:
        """Return the instruction that writes each holding of a version that the operation makes."""
        readers, writers = self.words[USES + 2 * version : USES + 2 * version + 2]
        holdings = self.words[readers] - readers - 1
        return plain(self.words[writers : writers + holdings])
