"""The order of instructions in a simulation.

An instruction waits for those that make what it reads, for those that read or wrote what it overwrites, and
for the one before it of its *runner*: a lane of its worker, or a device that serves its workers in turn. It
is ready when they have ended, and its runner is awake if it waited for another one.
"""

from __future__ import annotations

from typing import NamedTuple

from ..support.compiled import Numbers, compiled
from .blocks import (
    BEFORE,
    COUNT,
    NEED_FIRSTS,
    READ_FIRSTS,
    RUNNER,
    RUNNER_ENDS,
    RUNNERS,
    USES,
    WRITE_FIRSTS,
)
from .net import Net


class Placed(NamedTuple):
    """All blocks, equal ones once, one after the other, with gaps."""

    words: Numbers
    """The integers of the blocks."""

    at: Numbers
    """Where each operation's block begins in `words`."""

    base: Numbers
    """The number of each operation's first instruction."""

    leg_base: Numbers
    """The number of each operation's first leg."""

    owner: Numbers
    """The operation of each instruction."""

    runner: Numbers
    """The lane of its worker that runs each instruction, or the device that serves its workers in turn."""

    before: Numbers
    """The instruction before the first one of a block with the same runner; -1 if there is none."""

    after: Numbers
    """The instruction after the last one of a block with the same runner; -1 if there is none."""


class Clock(NamedTuple):
    """When everything runs."""

    ready: Numbers
    """When each instruction is ready."""

    end: Numbers
    """When each instruction ends."""

    leg_start: Numbers
    """When each leg starts."""


class Lanes(NamedTuple):
    """The lanes of ways, and what runs instructions."""

    firsts: Numbers
    """Where the lanes of each way begin in `lanes`."""

    lanes: Numbers
    """The lanes of all ways."""

    wakes: Numbers
    """The time that each runner takes to wake, if it waits for another one."""

    in_turn: bool
    """Whether a runner serves its instructions one after the other; if not, it serves any number at once."""


@compiled
def settle(placed: Placed, operations: Numbers, at: Numbers, bases: Numbers, leg_bases: Numbers) -> None:
    """Note where the blocks of operations begin, their first instructions and their first legs."""
    for place in range(len(operations)):
        operation, block, base = operations[place], at[place], bases[place]
        placed.at[operation], placed.base[operation] = block, base
        placed.leg_base[operation] = leg_bases[place]
        runners = block + placed.words[block + RUNNER]
        for local in range(placed.words[block + COUNT]):
            placed.owner[base + local] = operation
            placed.runner[base + local] = placed.words[runners + local]


@compiled
def chain(net: Net, placed: Placed, last: Numbers, kept: Numbers, moved: Numbers) -> int:
    """Let every runner keep the order of the clock.

    Write the instructions of kept operations that follow another one than before to `moved`, and return
    their number. `last` has a place for each runner.
    """
    words, at = placed.words, placed.at
    for runner in range(len(last)):
        last[runner] = -1
    count = 0
    for place in range(len(net.order)):
        operation = net.order[place]
        block, base = at[operation], placed.base[operation]
        entry = block + words[block + RUNNER_ENDS]
        for _ in range(words[block + RUNNERS]):
            runner = words[entry]
            first, final = base + words[entry + 1], base + words[entry + 2]
            entry += 3
            earlier = last[runner]
            if kept[operation] and placed.before[first] != earlier:
                moved[count] = first
                count += 1
            placed.before[first] = earlier
            if earlier >= 0:
                placed.after[earlier] = first
            placed.after[final] = -1
            last[runner] = final
    return count


@compiled
def writer(net: Net, placed: Placed, version: int, held: int) -> int:
    """Return the instruction that writes a holding of a version."""
    maker = net.maker[version]
    block = placed.at[maker]
    writers = block + placed.words[block + USES + 2 * net.made_as[version] + 1]
    return int(placed.base[maker] + placed.words[writers + held])


@compiled
def seen(placed: Placed, ways: Lanes, end: Numbers, number: int, other: int) -> int:
    """Return when an instruction may go on after another one has ended, if it waits for no others."""
    runner = placed.runner[number]
    return int(end[other] + (ways.wakes[runner] if placed.runner[other] != runner else 0))


@compiled
def joined(
    placed: Placed,
    ways: Lanes,
    end: Numbers,
    known: Numbers,
    number: int,
    other: int,
    found: tuple[int, int, int],
) -> tuple[int, int, int]:
    """Add `other` to the known and the unknown instructions that an instruction comes after."""
    latest, unknown, last = found
    if known[other] != 1:
        return latest, unknown + 1, last
    moment = seen(placed, ways, end, number, other)
    return (moment, unknown, other) if moment > latest else (latest, unknown, last)


@compiled
def latest_known(
    net: Net, placed: Placed, ways: Lanes, end: Numbers, known: Numbers, number: int
) -> tuple[int, int, int]:
    """Return when one may go on after the known ones that it comes after, the number of others, and the last
    one that is known; -1 if none ends after the start.
    """
    words, at = placed.words, placed.at
    operation = placed.owner[number]
    block, base = at[operation], placed.base[operation]
    local = number - base
    found = 0, 0, -1
    head = block + words[block + NEED_FIRSTS] + local
    for place in range(block + words[head], block + words[head + 1]):
        found = joined(placed, ways, end, known, number, base + words[place], found)
    near = words[block + words[block + BEFORE] + local]
    other = base + near if near >= 0 else placed.before[number]
    if other >= 0 and ways.in_turn:
        found = joined(placed, ways, end, known, number, other, found)
    for written in range(2):
        head = block + words[block + (WRITE_FIRSTS if written else READ_FIRSTS)] + local
        for place in range(block + words[head], block + words[head + 1], 2):
            version = net.versions[net.firsts[operation] + words[place]]
            held = words[place + 1]
            if written:
                version = net.overwritten[version]
                if version < 0:
                    continue
            if net.maker[version] >= 0:
                other = writer(net, placed, version, held)
                if other != number:
                    found = joined(placed, ways, end, known, number, other, found)
            if written:
                for user in range(net.user_firsts[version], net.user_firsts[version + 1]):
                    reader = net.users[2 * user]
                    start = at[reader]
                    head2 = start + words[start + USES + 2 * net.users[2 * user + 1]] + held
                    for entry in range(start + words[head2], start + words[head2 + 1]):
                        other = placed.base[reader] + words[entry]
                        if other != number:
                            found = joined(placed, ways, end, known, number, other, found)
    return found
