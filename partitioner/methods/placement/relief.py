"""Free memory on a worker at the tick at which it holds most, by moves of least cost for each byte.

A value that is live on the worker at that tick is freed there by few sets of nodes. One has its maker, if it
is there, and all readers on the worker from the tick on. If the value lasts or is a copy, another one has the
readers up to the tick instead of those after it. One more set is the node that runs at the tick. Nodes that
share their worker with one of a set are in it as well.

A move of a set is allowed if it frees bytes at the tick, and if every worker then fits its limit or holds no
more at its peak than before. If no move is found, moves get more freedom. First a set goes to the worker
nearest to it or to the one with most room. Then it goes to any worker. Last, it may fill another worker
beyond its limit if the sum of all that exceeds limits falls.

Of allowed moves, the one with the least cost for each byte that it frees at the tick is made first: the
nanoseconds of computing and messages that it adds, less those that it saves. Sets are considered in batches,
those of larger values first. Ties go to lower values, then to lower workers.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ....support.compiled import Numbers, compiled, zeros
from .live_tree import bytes_at, peak, peak_tick
from .movable import MovablePlacement
from .moves import move, place_of_reader, stay_on

BATCH = 256
"""The number of sets that are compared with each other."""

MOST_NODES = 64
"""The most nodes of a set."""

MOST_MOVES = 4
"""How often a node moves at most, so that all ends."""

NEAR, EVERYWHERE, LESS_IN_ALL = range(3)
"""The freedom of moves."""


@compiled
def _live_bytes(placed: MovablePlacement, value: int, worker: int, tick: int) -> int:
    """Return the bytes of a value that a worker holds at a tick."""
    maker = placed.maker[value]
    if placed.worker[maker] == worker:
        if placed.lasting[value] or placed.tick[maker] <= tick <= placed.until[value]:
            return placed.stored[value]  # type: ignore[no-any-return]
        return 0
    first, count = placed.stay_firsts[value], placed.stay_counts[value]
    stay = stay_on(placed.stay_worker, first, count, worker)
    if stay >= 0 and placed.stay_first[stay] <= tick <= placed.stay_last[stay]:
        return placed.sent[value]  # type: ignore[no-any-return]
    return 0


@compiled
def _sets(placed: MovablePlacement, worker: int, tick: int) -> list[tuple[int, int]]:
    """Return the sets that may free memory as a heap of minus the bytes and a number.

    Number `2 v` is value `v` and readers from the tick on, and `2 v + 1` is the value and readers up to it.
    The last number is the node of the tick.
    """
    found = [(0, 0)] * 0
    maker, worker_of, stay_firsts = placed.maker, placed.worker, placed.stay_firsts
    stay_counts, stay_worker = placed.stay_counts, placed.stay_worker  # a loop reads a field at a price
    for value in range(len(maker)):
        here = worker_of[maker[value]] == worker
        first = stay_firsts[value]
        for stay in range(first, first + stay_counts[value]):
            here = here or stay_worker[stay] == worker
        nbytes = _live_bytes(placed, value, worker, tick) if here else 0
        if nbytes > 0:
            found.append((-nbytes, 2 * value))
            if placed.lasting[value] or placed.worker[placed.maker[value]] != worker:
                found.append((-nbytes, 2 * value + 1))
    node = placed.order[tick]
    if placed.worker[node] == worker:
        nbytes = placed.scratch[node]
        for entry in range(placed.input_firsts[node], placed.input_firsts[node + 1]):
            nbytes += _live_bytes(placed, placed.inputs[entry], worker, tick)
        for entry in range(placed.value_firsts[node], placed.value_firsts[node + 1]):
            nbytes += _live_bytes(placed, placed.values[entry], worker, tick)
        found.append((-nbytes, 2 * len(placed.maker)))
    heapify(found)
    return found


@compiled
def _join(placed: MovablePlacement, nodes: list[int], node: int) -> None:
    """Add a node, and those that share its worker, to a set."""
    leader = placed.leader[node]
    if not placed.marked[leader]:
        placed.marked[leader] = 1
        for entry in range(placed.group_firsts[leader], placed.group_firsts[leader + 1]):
            nodes.append(placed.groups[entry])


@compiled
def _nodes_of(placed: MovablePlacement, number: int, worker: int, tick: int, moved: Numbers) -> list[int]:
    """Return the nodes of a set; none if they are more than `MOST_NODES` or one has moved too often."""
    nodes = [0] * 0
    if number == 2 * len(placed.maker):
        _join(placed, nodes, placed.order[tick])
    else:
        value = number // 2
        if placed.worker[placed.maker[value]] == worker:
            _join(placed, nodes, placed.maker[value])
        first, last = placed.reader_firsts[value], placed.reader_firsts[value + 1]
        if number % 2:
            last = place_of_reader(placed, value, tick + 1)
        else:
            first = place_of_reader(placed, value, tick)
        for place in range(first, last):
            if placed.worker[placed.readers[place]] == worker and len(nodes) <= MOST_NODES:
                _join(placed, nodes, placed.readers[place])
    allowed = len(nodes) <= MOST_NODES
    for node in nodes:
        placed.marked[placed.leader[node]] = 0
        if moved[node] >= MOST_MOVES:
            allowed = False
    if not allowed:
        nodes.clear()
    return nodes


@compiled
def _move_all(placed: MovablePlacement, nodes: list[int], target: int) -> int:
    """Move all nodes of a set, and return the cost."""
    cost = 0
    for node in nodes:
        cost += move(placed, node, target)
    return cost


@compiled
def _move_and_weigh(
    placed: MovablePlacement,
    limits: Numbers,
    nodes: list[int],
    worker: int,
    target: int,
    tick: int,
    freedom: int,
) -> tuple[int, int]:
    """Move a set, and return the cost, and the bytes that this frees at a tick; 0 if it is not allowed."""
    before = bytes_at(placed.highest, placed.added, placed.leaves, worker, tick)
    peaks = zeros(placed.workers)
    for each in range(placed.workers):
        peaks[each] = peak(placed.highest, placed.leaves, each)
    cost = _move_all(placed, nodes, target)
    freed = before - bytes_at(placed.highest, placed.added, placed.leaves, worker, tick)
    rising, all_excess = False, 0
    for each in range(placed.workers):
        new = peak(placed.highest, placed.leaves, each)
        if new > limits[each] and new > peaks[each]:
            rising = True
        all_excess += max(new - limits[each], 0) - max(peaks[each] - limits[each], 0)
    if rising and (freedom < LESS_IN_ALL or all_excess >= 0):
        freed = 0
    return cost, max(freed, 0)


@compiled
def _nearest(placed: MovablePlacement, limits: Numbers, nodes: list[int], worker: int) -> int:
    """Return the worker with room that makes or reads most bytes of what a set touches; -1 if none does."""
    near = zeros(placed.places)
    for node in nodes:
        for entry in range(placed.input_firsts[node], placed.input_firsts[node + 1]):
            value = placed.inputs[entry]
            near[placed.worker[placed.maker[value]]] += placed.sent[value]
        for entry in range(placed.value_firsts[node], placed.value_firsts[node + 1]):
            value = placed.values[entry]
            first = placed.stay_firsts[value]
            for stay in range(first, first + placed.stay_counts[value]):
                near[placed.stay_worker[stay]] += placed.sent[value]
    found = -1
    for each in range(placed.workers):
        roomy = peak(placed.highest, placed.leaves, each) < limits[each]
        if each != worker and roomy and near[each] > (near[found] if found >= 0 else 0):
            found = each
    return found


@compiled
def _roomiest(placed: MovablePlacement, limits: Numbers, worker: int) -> int:
    """Return the other worker that is furthest below its limit; the first of several."""
    found, most = -1, 0
    for each in range(placed.workers):
        room = limits[each] - peak(placed.highest, placed.leaves, each)
        if each != worker and (found < 0 or room > most):
            found, most = each, room
    return found


@compiled
def _best(
    placed: MovablePlacement,
    limits: Numbers,
    moved: Numbers,
    worker: int,
    tick: int,
    number: int,
    freedom: int,
) -> tuple[float, int, int]:
    """Return the least cost for each byte of moves of a set, its number and the target.

    The target is -1 if none is allowed.
    """
    nodes = _nodes_of(placed, number, worker, tick, moved)
    least, found = 0.0, -1
    if len(nodes) == 0:
        return least, number, found
    nearest, roomiest = -1, -1
    if freedom == NEAR:
        nearest, roomiest = _nearest(placed, limits, nodes, worker), _roomiest(placed, limits, worker)
    for target in range(placed.workers):
        if target != worker and (freedom > NEAR or target in (nearest, roomiest)):
            cost, freed = _move_and_weigh(placed, limits, nodes, worker, target, tick, freedom)
            _move_all(placed, nodes, worker)
            if freed > 0 and (found < 0 or cost / freed < least):
                least, found = cost / freed, target
    return least, number, found


@compiled
def relieve(placed: MovablePlacement, limits: Numbers, moved: Numbers, worker: int, freedom: int) -> int:
    """Make moves until a worker fits its limit at the tick at which it holds most, and return their number.

    `moved` counts the moves of each node. Keys in the queue may be old. A move is kept if its key, found
    again, is still the least. If it is not allowed any more, another target is looked for.
    """
    tick = peak_tick(placed.highest, placed.leaves, worker)
    sets = _sets(placed, worker, tick)
    count = 0
    while len(sets) and _exceeds(placed, limits, worker, tick):
        queue = [(0.0, 0, 0)] * 0
        for _ in range(min(BATCH, len(sets))):
            known = _best(placed, limits, moved, worker, tick, heappop(sets)[1], freedom)
            if known[2] >= 0:
                heappush(queue, known)
        while len(queue) and _exceeds(placed, limits, worker, tick):
            _, number, target = heappop(queue)
            nodes = _nodes_of(placed, number, worker, tick, moved)
            if len(nodes) == 0:
                continue
            cost, freed = _move_and_weigh(placed, limits, nodes, worker, target, tick, freedom)
            key = (cost / freed if freed > 0 else 0.0, number, target)
            if freed > 0 and (len(queue) == 0 or key <= queue[0]):
                count += 1
                for node in nodes:
                    moved[node] += 1
                continue
            _move_all(placed, nodes, worker)
            if freed == 0:
                key = _best(placed, limits, moved, worker, tick, number, freedom)
            if key[2] >= 0:
                heappush(queue, key)
    return count


@compiled
def _exceeds(placed: MovablePlacement, limits: Numbers, worker: int, tick: int) -> bool:
    """Return whether a worker exceeds its limit at a tick."""
    found = bytes_at(placed.highest, placed.added, placed.leaves, worker, tick)
    return found > int(limits[worker])
