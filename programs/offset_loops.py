"""The heuristics of `offsets` in compiled loops. Import this module only if numba is installed."""

from __future__ import annotations

from ..support.compiled import Numbers, machine_code


@machine_code
def place_in_time(
    sizes: Numbers, births: Numbers, deaths: Numbers, order: Numbers, dying: Numbers, offsets: Numbers
) -> int:
    """Allocate buffers in an order of their births, and free them in the order `dying`.

    Each goes into the smallest sufficient gap. Write the offsets, and return the size of the arena.
    """
    starts, ends = [0], [1 << 62]
    arena, dead = 0, 0
    for index in order:
        while deaths[dying[dead]] < births[index]:
            free(starts, ends, offsets[dying[dead]], offsets[dying[dead]] + sizes[dying[dead]])
            dead += 1
        size, best = sizes[index], -1
        for gap in range(len(starts)):
            length = ends[gap] - starts[gap]
            if size <= length and (best < 0 or length < ends[best] - starts[best]):
                best = gap
        offsets[index] = starts[best]
        starts[best] += size
        arena = max(arena, starts[best])
        if starts[best] == ends[best]:
            starts.pop(best)
            ends.pop(best)
    return arena


@machine_code
def free(starts: list[int], ends: list[int], start: int, end: int) -> None:
    """Return memory to the gaps, which are in order, and join it with its neighbours."""
    low, high = 0, len(starts)
    while low < high:
        middle = (low + high) // 2
        if starts[middle] < start:
            low = middle + 1
        else:
            high = middle
    if low < len(starts) and starts[low] == end:
        end = ends.pop(low)
        starts.pop(low)
    if low and ends[low - 1] == start:
        ends[low - 1] = end
    else:
        starts.insert(low, start)
        ends.insert(low, end)


@machine_code
def place_heaviest(
    sizes: Numbers, births: Numbers, deaths: Numbers, order: Numbers, offsets: Numbers, below: int
) -> int:
    """Put buffers, in order, into the smallest sufficient gap left by those with overlapping lifetimes.

    Write the offsets, and return the size of the arena; stop when it has `below` bytes or more. `order` is
    changed.
    """
    arena = 0
    for count in range(len(order)):
        index = order[count]
        size, birth, death = sizes[index], births[index], deaths[index]
        reach, least, start = 0, 1 << 62, -1
        for place in range(count):
            other = order[place]
            if births[other] <= death and deaths[other] >= birth:
                gap = offsets[other] - reach
                if size <= gap < least:
                    least, start = gap, reach
                reach = max(reach, offsets[other] + sizes[other])
        if start < 0:
            start = reach
        offsets[index] = start
        place = count
        while place and offsets[order[place - 1]] >= start:
            order[place] = order[place - 1]
            place -= 1
        order[place] = index
        arena = max(arena, start + size)
        if arena >= below:
            break
    return arena
