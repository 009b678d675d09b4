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

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from ..support.compiled import Numbers, numbers
from .times import Source

Use = tuple[int, int]
"""A version that the operation touches, as its place among them, and the number of a holding."""

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
RUNNERS, RUNNER_ENDS = 14, 15
"""The number of runners, and for each the runner, its first and its last instruction."""
USES = 16
"""From here on, for each version: where the first reader of each holding is, and the writers of all holdings;
0 if the operation does not make the version.
"""


@dataclass(frozen=True, slots=True, eq=False)
class OperationBlock:
    """The instructions of one operation."""

    words: Numbers
    """The block as loops read it."""

    count: int
    """The number of instructions."""

    workers: list[int]
    """The worker of each instruction."""

    runners: Numbers
    """The runner of each instruction."""

    transfers: list[bool]
    """Whether each instruction is a transfer."""

    sources: list[int]
    """The worker that each message comes from, instruction by instruction."""

    nbytes: list[int]
    """The bytes of each message."""

    time_sources: list[Source]
    """Where the time of each instruction comes from."""

    legs: int
    """The number of legs."""

    writers: list[list[int]]
    """For each version that is touched, the instruction that writes each holding; -1 if none does."""


@dataclass(slots=True)
class Instruction:
    """An instruction of a block that is being made."""

    tick: int
    """The clock within the operation."""

    worker: int
    """The worker that runs it."""

    runner: int
    """The lane of the worker that runs it, or the device that serves all its workers in turn."""

    transfer: bool
    """Whether it is a transfer."""

    begin: int
    """The time before its legs."""

    finish: int
    """The time after its legs."""

    leg_times: Sequence[int]
    """The time of each leg."""

    leg_ways: Sequence[int]
    """The way of each leg."""

    sources: Sequence[int]
    """The worker that each message comes from."""

    nbytes: Sequence[int]
    """The bytes of each message."""

    time_source: Source
    """Where its time comes from."""

    needs: list[Instruction]
    """The instructions of the block that make what it reads."""

    reads: list[Use]
    """The holdings that it reads."""

    writes: list[Use]
    """The holdings that it writes."""

    number: int = -1
    """Its place in the block."""

    followers: list[int] = field(default_factory=list)
    """The places of the instructions that need it."""


def flattened(made: Sequence[Instruction], holdings: Sequence[int], inputs: int) -> OperationBlock:
    """Return instructions in the order of the clock, in integers.

    `holdings` are the numbers of holdings of the versions that the operation touches, the first `inputs` of
    which others make.
    """
    found = sorted(made, key=lambda each: (each.tick, each.worker))
    for number, each in enumerate(found):
        each.number = number
    for each in found:
        for needed in each.needs:
            needed.followers.append(each.number)
    words = _Words(USES + 2 * len(holdings))
    words.put(BEGIN, [each.begin for each in found])
    words.put(FINISH, [each.finish for each in found])
    legs = [len(each.leg_times) for each in found]
    owners = [each.number for each, count in zip(found, legs, strict=True) for _ in range(count)]
    words.put(LEG_FIRSTS, [0, *accumulate(legs)])
    words.put(LEG_TIME, [time for each in found for time in each.leg_times])
    words.put(LEG_WAY, [way for each in found for way in each.leg_ways])
    words.put(LEG_OWNER, owners)
    words.put_lists(NEED_FIRSTS, [[needed.number for needed in each.needs] for each in found])
    words.put_lists(FOLLOW_FIRSTS, [each.followers for each in found])
    words.put_lists(READ_FIRSTS, [[n for use in each.reads for n in use] for each in found])
    words.put_lists(WRITE_FIRSTS, [[n for use in each.writes for n in use] for each in found])
    _put_runners(words, found)
    writers = _put_uses(words, found, holdings, inputs)
    words.listed[COUNT], words.listed[LEGS] = len(found), len(owners)
    return OperationBlock(
        numbers(words.listed),
        len(found),
        [each.worker for each in found],
        numbers([each.runner for each in found]),
        [each.transfer for each in found],
        [source for each in found for source in each.sources],
        [nbytes for each in found for nbytes in each.nbytes],
        [each.time_source for each in found],
        len(owners),
        writers,
    )


def _put_runners(words: _Words, found: Sequence[Instruction]) -> None:
    before, after = [-1] * len(found), [-1] * len(found)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for each in found:
        if each.runner in last:
            before[each.number], after[last[each.runner]] = last[each.runner], each.number
        first.setdefault(each.runner, each.number)
        last[each.runner] = each.number
    words.put(BEFORE, before)
    words.put(AFTER, after)
    words.listed[RUNNERS] = len(first)
    words.put(RUNNER_ENDS, [n for runner in first for n in (runner, first[runner], last[runner])])


def _put_uses(
    words: _Words, found: Sequence[Instruction], holdings: Sequence[int], inputs: int
) -> list[list[int]]:
    readers: list[list[list[int]]] = [[[] for _ in range(count)] for count in holdings]
    writers = [[-1] * count for count in holdings]
    for each in found:
        for slot, number in each.reads:
            readers[slot][number].append(each.number)
        for slot, number in each.writes:
            writers[slot][number] = each.number
    for slot in range(len(holdings)):
        words.put_lists(USES + 2 * slot, readers[slot])
        if slot >= inputs:
            words.put(USES + 2 * slot + 1, writers[slot])
    return writers


class _Words:
    """The integers of a block that is being made."""

    def __init__(self, heads: int) -> None:
        self.listed = [0] * heads

    def put(self, place: int, values: Sequence[int]) -> None:
        """Append values, to which the integer at `place` leads."""
        self.listed[place] = len(self.listed)
        self.listed += values

    def put_lists(self, place: int, lists: Sequence[Sequence[int]]) -> None:
        """Append where each list begins, and the end of the last one, and then all lists."""
        self.listed[place] = len(self.listed)
        self.listed += accumulate(map(len, lists), initial=len(self.listed) + len(lists) + 1)
        self.listed += chain.from_iterable(lists)
