"""How long each operation is on a chain that decides the time of an iteration.

The chain goes back from the last end. A leg that starts later than it is ready waited for another one, which
occupied one of its lanes until then. Else its instruction was ready when the one that it waits for last had
ended. So the times of the chain add up to the whole. Implemented in: `deciding_nanoseconds`.
"""

from __future__ import annotations

import numpy as np

from ..support.compiled import Numbers, compiled, filled, looped, plain, zeros
from .blocks import BEGIN, COUNT, FINISH, LEG_FIRSTS, LEG_OWNER, LEG_TIME, LEG_WAY, LEGS
from .net import Net
from .waits import Clock, Lanes, Placed, latest_known

_NONE = -1


def deciding_nanoseconds(net: Net, placed: Placed, clock: Clock, ways: Lanes, legs: int) -> list[int]:
    """Return the nanoseconds of each operation on a chain that takes the whole iteration.

    `legs` is the number of all legs.
    """
    ends, owners, numbers = zeros(legs), zeros(legs), zeros(legs)
    _list_legs(placed, clock, ends, owners, numbers)
    order = np.argsort(np.array(ends, np.int64), kind="stable")
    listed = tuple([looped(np.array(each, np.int64)[order]) for each in (ends, owners, numbers)])
    found, known = zeros(len(net.order)), filled(len(clock.end), 1)
    _follow_back(net, placed, clock, ways, known, listed, found)
    return plain(found)


@compiled
def _list_legs(placed: Placed, clock: Clock, ends: Numbers, owners: Numbers, numbers: Numbers) -> None:
    """Write when all legs end, their operations, and their numbers within the blocks of these."""
    words, count = placed.words, 0
    for operation in range(len(placed.at)):
        block, base = placed.at[operation], placed.leg_base[operation]
        time = block + words[block + LEG_TIME]
        for leg in range(words[block + LEGS]):
            ends[count] = clock.leg_start[base + leg] + words[time + leg]
            owners[count], numbers[count] = operation, leg
            count += 1


@compiled
def _follow_back(
    net: Net,
    placed: Placed,
    clock: Clock,
    ways: Lanes,
    known: Numbers,
    listed: tuple[Numbers, Numbers, Numbers],
    found: Numbers,
) -> None:
    """Add the times of the chain that ends last to `found`. `known` is 1 for every instruction."""
    words = placed.words
    number = _NONE
    for operation in range(len(placed.at)):
        base = placed.base[operation]
        for other in range(base, base + words[placed.at[operation] + COUNT]):
            if number == _NONE or clock.end[other] > clock.end[number]:
                number = other
    while True:
        operation = placed.owner[number]
        block = placed.at[operation]
        finish = words[block + words[block + FINISH] + number - placed.base[operation]]
        leg = _last_leg(placed, clock, number, clock.end[number] - finish)
        if leg == _NONE:
            found[operation] += clock.end[number] - clock.ready[number]
        else:
            found[operation] += finish
            while leg != _NONE:
                block = placed.at[operation]
                found[operation] += words[block + words[block + LEG_TIME] + leg]
                number = placed.base[operation] + words[block + words[block + LEG_OWNER] + leg]
                start = clock.leg_start[placed.leg_base[operation] + leg]
                begun = _begun(placed, clock, operation, leg)
                if start == begun:
                    found[operation] += begun - clock.ready[number]
                    break
                operation, leg = _occupying(net, placed, clock, ways, listed, operation, leg)
        if clock.ready[number] == 0:
            return
        _, _, other = latest_known(net, placed, ways, clock.end, known, number)
        found[operation] += clock.ready[number] - clock.end[other]
        number = other


@compiled
def _begun(placed: Placed, clock: Clock, operation: int, leg: int) -> int:
    """Return when a leg is ready."""
    block = placed.at[operation]
    local = placed.words[block + placed.words[block + LEG_OWNER] + leg]
    begin = placed.words[block + placed.words[block + BEGIN] + local]
    return int(clock.ready[placed.base[operation] + local] + begin)


@compiled
def _last_leg(placed: Placed, clock: Clock, number: int, end: int) -> int:
    """Return the leg of an instruction that ends at a moment; -1 if there is none."""
    words, operation = placed.words, placed.owner[number]
    block, base = placed.at[operation], placed.leg_base[operation]
    head = block + words[block + LEG_FIRSTS] + number - placed.base[operation]
    for leg in range(words[head], words[head + 1]):
        if clock.leg_start[base + leg] + words[block + words[block + LEG_TIME] + leg] == end:
            return int(leg)
    return _NONE


@compiled
def _occupying(
    net: Net,
    placed: Placed,
    clock: Clock,
    ways: Lanes,
    listed: tuple[Numbers, Numbers, Numbers],
    operation: int,
    leg: int,
) -> tuple[int, int]:
    """Return the leg, with its operation, that occupied a lane of a leg until this one started."""
    ends, owners, numbers = listed
    words, block = placed.words, placed.at[operation]
    way = words[block + words[block + LEG_WAY] + leg]
    start = clock.leg_start[placed.leg_base[operation] + leg]
    begun, place = _begun(placed, clock, operation, leg), net.position[operation]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] < start:
            low = middle + 1
        else:
            high = middle
    while low < len(ends) and ends[low] == start:
        other, number = owners[low], numbers[low]
        at = placed.at[other]
        its = words[at + words[at + LEG_WAY] + number]
        its_begun, its_place = _begun(placed, clock, other, number), net.position[other]
        earlier = its_begun < begun or (
            its_begun == begun and (its_place < place or (its_place == place and number < leg))
        )
        if its >= 0 and earlier:
            for one in range(ways.firsts[way], ways.firsts[way + 1]):
                for two in range(ways.firsts[its], ways.firsts[its + 1]):
                    if ways.lanes[one] == ways.lanes[two]:
                        return int(other), int(number)
        low += 1
    return operation, _NONE
