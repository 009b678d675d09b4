"""The loops of a simulation: when everything runs.

An instruction is ready when those have ended that it waits for (`waits`). It begins, which takes a while.
Then its legs are ready together, which occupy lanes, and when all have ended it finishes. Lanes serve the
legs of instructions by (ready time, key), those of one instruction in turn. A key is made of the operation's
place in the order and the instruction's number in its block, so it depends on nothing that was simulated
before.

A change alters nothing before the first moment at which something is ready that it adds, removes or lets wait
for others than before (`first_change`). All that is ready earlier keeps its times (`keep`), and the queue
goes on from there (`follow`).
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..support.compiled import Numbers, compiled
from .blocks import (
    AFTER,
    BEGIN,
    COUNT,
    FINISH,
    FOLLOW_FIRSTS,
    LEG_FIRSTS,
    LEG_TIME,
    LEG_WAY,
    READ_FIRSTS,
    USES,
    WRITE_FIRSTS,
)
from .net import Net
from .waits import Clock, Lanes, Placed, latest_known, seen, writer

SHIFT = 32
"""The bits of a key that number an instruction within its block."""

NEVER = 1 << 62
"""A moment after all others."""


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
            latest, unknown, _ = latest_known(net, placed, ways, clock.end, known, number)
            if unknown == 0:
                bound = min(bound, latest)
    for place in range(count):
        number = moved[place]
        bound = min(bound, clock.ready[number])
        latest, unknown, _ = latest_known(net, placed, ways, clock.end, known, number)
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
    net: Net,
    placed: Placed,
    clock: Clock,
    ways: Lanes,
    known: Numbers,
    missing: Numbers,
    free: Numbers,
    limit: int,
) -> int:
    """Find the times of all instructions that are not known, and return the time of the whole.

    Stop at a leg that ends after `limit`, and return when it ends.
    """
    words, at, ready, ends = placed.words, placed.at, clock.ready, clock.end
    queue = [(0, 0)] * 0
    begun = [0] * 0
    done = [0] * 0
    for operation in range(len(at)):
        base = placed.base[operation]
        for number in range(base, base + words[at[operation] + COUNT]):
            if known[number] == 1:
                continue
            if known[number] == 2:
                begun.append(number)
                continue
            latest, unknown, _ = latest_known(net, placed, ways, ends, known, number)
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
            if end > limit:
                return int(end)
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
