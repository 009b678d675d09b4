"""The loops of a simulation: what comes after what, and when everything runs.

An instruction waits for those that make what it reads, for those that read or wrote what it overwrites, and
for the one before it of its *runner*: a lane of its worker, or a device that serves its workers in turn. It
is ready when they have ended, and its runner is awake if it waited for another one. It begins, which takes a
while. Then its legs are ready together, which occupy lanes, and when all have ended it finishes. Lanes serve
the legs of instructions by (ready time, key), those of one instruction in turn. A key is made of the
operation's place in the order and the instruction's number in its block, so it depends on nothing that was
simulated before.

A change alters nothing before the first moment at which something is ready that it adds, removes or lets wait
for others than before (`first_change`). All that is ready earlier keeps its times (`keep`), and the queue
goes on from there (`follow`).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from ..support.compiled import Numbers, compiled
from .blocks import (
    AFTER,
    BEFORE,
    BEGIN,
    COUNT,
    FINISH,
    FOLLOW_FIRSTS,
    LEG_FIRSTS,
    LEG_TIME,
    LEG_WAY,
    NEED_FIRSTS,
    READ_FIRSTS,
    RUNNER,
    RUNNER_ENDS,
    RUNNERS,
    USES,
    WRITE_FIRSTS,
)
from .net import Net

SHIFT = 32
"""The bits of a key that number an instruction within its block."""


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
    placed: Placed, ways: Lanes, end: Numbers, known: Numbers, number: int, other: int, found: tuple[int, int]
) -> tuple[int, int]:
    """Add `other` to the known and the unknown instructions that an instruction comes after."""
    latest, unknown = found
    if known[other] == 1:
        return max(latest, seen(placed, ways, end, number, other)), unknown
    return latest, unknown + 1


@compiled
def latest_known(
    net: Net, placed: Placed, ways: Lanes, end: Numbers, known: Numbers, number: int
) -> tuple[int, int]:
    """Return when one may go on after the known ones that it comes after, and the number of others."""
    words, at = placed.words, placed.at
    operation = placed.owner[number]
    block, base = at[operation], placed.base[operation]
    local = number - base
    found = 0, 0
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


@compiled
def first_change(
    net: Net,
    placed: Placed,
    clock: Clock,
    ways: Lanes,
    known: Numbers,
    replaced: Numbers,
    moved: Numbers,
    count: int,
    bound: int,
) -> int:
    """Return a time before which a change alters nothing.

    `known` marks the instructions of kept blocks. `replaced` are the operations whose blocks are new, the
    first `count` of `moved` the kept instructions that wait for others than before, and `bound` is when the
    first instruction of the old blocks was ready.
    """
    for place in range(len(replaced)):
        operation = replaced[place]
        base = placed.base[operation]
        for number in range(base, base + placed.words[placed.at[operation] + COUNT]):
            latest, unknown = latest_known(net, placed, ways, clock.end, known, number)
            if unknown == 0:
                bound = min(bound, latest)
    for place in range(count):
        number = moved[place]
        bound = min(bound, clock.ready[number])
        latest, unknown = latest_known(net, placed, ways, clock.end, known, number)
        if unknown == 0:
            bound = min(bound, latest)
    return bound


@compiled
def keep(placed: Placed, clock: Clock, ways: Lanes, known: Numbers, free: Numbers, since: int) -> None:
    """Tell which instructions keep their times: 1 in `known` for those that do, 2 if only its beginning does.

    `known` marks the instructions of kept blocks. Write until when lanes are occupied by legs that keep their
    times to `free`.
    """
    words = placed.words
    for lane in range(len(free)):
        free[lane] = 0
    for operation in range(len(placed.at)):
        block, base, legs = placed.at[operation], placed.base[operation], placed.leg_base[operation]
        begin, head = block + words[block + BEGIN], block + words[block + LEG_FIRSTS]
        time, way = block + words[block + LEG_TIME], block + words[block + LEG_WAY]
        for local in range(words[block + COUNT]):
            number = base + local
            if known[number] == 0:
                continue
            ready = clock.ready[number]
            if ready >= since:
                known[number] = 0
            elif ready + words[begin + local] >= since:
                known[number] = 2
            else:
                for leg in range(words[head + local], words[head + local + 1]):
                    taken = words[way + leg]
                    if taken >= 0:
                        end = clock.leg_start[legs + leg] + words[time + leg]
                        for lane in range(ways.firsts[taken], ways.firsts[taken + 1]):
                            free[ways.lanes[lane]] = max(free[ways.lanes[lane]], end)


@compiled
def release(
    placed: Placed, ways: Lanes, clock: Clock, missing: Numbers, begun: list[int], other: int, number: int
) -> None:
    """Note for `other` that an instruction that it waits for has ended."""
    clock.ready[other] = max(clock.ready[other], seen(placed, ways, clock.end, other, number))
    missing[other] -= 1
    if missing[other] == 0:
        begun.append(other)


@compiled
def follow(
    net: Net, placed: Placed, clock: Clock, ways: Lanes, known: Numbers, missing: Numbers, free: Numbers
) -> int:
    """Find the times of all instructions that are not known, and return the time of the whole."""
    words, at, ready, ends = placed.words, placed.at, clock.ready, clock.end
    queue = [(0, 0)]
    queue.pop()
    begun = [0]
    begun.pop()
    done = [0]
    done.pop()
    for operation in range(len(at)):
        base = placed.base[operation]
        for number in range(base, base + words[at[operation] + COUNT]):
            if known[number] == 1:
                continue
            if known[number] == 2:
                begun.append(number)
                continue
            latest, unknown = latest_known(net, placed, ways, ends, known, number)
            ready[number] = latest
            missing[number] = unknown
            if unknown == 0:
                begun.append(number)
    while True:
        while begun:
            number = begun.pop()
            operation = placed.owner[number]
            block = at[operation]
            local = number - placed.base[operation]
            moment = ready[number] + words[block + words[block + BEGIN] + local]
            ends[number] = moment
            head = block + words[block + LEG_FIRSTS] + local
            waiting = False
            for leg in range(words[head], words[head + 1]):
                way = words[block + words[block + LEG_WAY] + leg]
                if way >= 0 and ways.firsts[way] < ways.firsts[way + 1]:
                    waiting = True
                else:
                    clock.leg_start[placed.leg_base[operation] + leg] = moment
                    ends[number] = max(ends[number], moment + words[block + words[block + LEG_TIME] + leg])
            if waiting:
                heappush(queue, (moment, (net.position[operation] << SHIFT) + local))
            else:
                ends[number] += words[block + words[block + FINISH] + local]
                done.append(number)
        while done:
            number = done.pop()
            operation = placed.owner[number]
            block, base = at[operation], placed.base[operation]
            local = number - base
            head = block + words[block + FOLLOW_FIRSTS] + local
            for place in range(block + words[head], block + words[head + 1]):
                release(placed, ways, clock, missing, begun, base + words[place], number)
            near = words[block + words[block + AFTER] + local]
            other = base + near if near >= 0 else placed.after[number]
            if other >= 0 and ways.in_turn:
                release(placed, ways, clock, missing, begun, other, number)
            for written in range(2):
                head = block + words[block + (WRITE_FIRSTS if written else READ_FIRSTS)] + local
                for place in range(block + words[head], block + words[head + 1], 2):
                    version = net.versions[net.firsts[operation] + words[place]]
                    held = words[place + 1]
                    if written:
                        for user in range(net.user_firsts[version], net.user_firsts[version + 1]):
                            reader = net.users[2 * user]
                            start = at[reader]
                            head2 = start + words[start + USES + 2 * net.users[2 * user + 1]] + held
                            for entry in range(start + words[head2], start + words[head2 + 1]):
                                release(
                                    placed,
                                    ways,
                                    clock,
                                    missing,
                                    begun,
                                    placed.base[reader] + words[entry],
                                    number,
                                )
                    version = net.overwriter[version]
                    if version >= 0:
                        other = writer(net, placed, version, held)
                        if other != number:
                            release(placed, ways, clock, missing, begun, other, number)
        if begun:
            continue
        if not queue:
            break
        moment, key = heappop(queue)
        operation = net.order[key >> SHIFT]
        block, local = at[operation], key & ((1 << SHIFT) - 1)
        number = placed.base[operation] + local
        head = block + words[block + LEG_FIRSTS] + local
        for leg in range(words[head], words[head + 1]):
            way = words[block + words[block + LEG_WAY] + leg]
            if way < 0:
                continue
            first, last = ways.firsts[way], ways.firsts[way + 1]
            if first == last:
                continue
            start = moment
            for lane in range(first, last):
                start = max(start, free[ways.lanes[lane]])
            end = start + words[block + words[block + LEG_TIME] + leg]
            for lane in range(first, last):
                free[ways.lanes[lane]] = end
            clock.leg_start[placed.leg_base[operation] + leg] = start
            ends[number] = max(ends[number], end)
        ends[number] += words[block + words[block + FINISH] + local]
        done.append(number)
    whole = 0
    for operation in range(len(at)):
        base = placed.base[operation]
        for number in range(base, base + words[at[operation] + COUNT]):
            whole = max(whole, ends[number])
    return whole
