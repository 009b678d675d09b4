"""Free memory on a worker at the tick where it holds most, by moves of least cost for each byte.

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

from heapq import heappop, heappush

from ....support.compiled import Numbers, compiled, zeros
from .live_tree import bytes_at, peak, peak_tick
from .moves import Held, move, place_of_reader, stay_of

BATCH = 256
"""The number of sets that are compared with each other."""

MOST_NODES = 64
"""The most nodes of a set."""

MOST_MOVES = 4
"""How often a node moves at most, so that all ends."""

NEAR, EVERYWHERE, LESS_IN_ALL = range(3)
"""The freedom of moves."""


@compiled
def _live_bytes(held: Held, value: int, worker: int, tick: int) -> int:
    """Return the bytes of a value that a worker holds at a tick."""
    maker = held.maker[value]
    if held.worker[maker] == worker:
        if held.lasting[value] or held.tick[maker] <= tick <= held.until[value]:
            return held.stored[value]  # type: ignore[no-any-return]
        return 0
    stay = stay_of(held, value, worker)
    if stay >= 0 and held.stay_first[stay] <= tick <= held.stay_last[stay]:
        return held.sent[value]  # type: ignore[no-any-return]
    return 0


@compiled
def _sets(held: Held, worker: int, tick: int) -> list[tuple[int, int]]:
    """List the sets that may free memory, by bytes, as minus the bytes and a number.

    Number `2 v` is value `v` and readers from the tick on, and `2 v + 1` is the value and readers up to it.
    The last number is the node of the tick.
    """
    found = [(0, 0) for _ in range(0)]
    for value in range(len(held.maker)):
        nbytes = _live_bytes(held, value, worker, tick)
        if nbytes > 0:
            found.append((-nbytes, 2 * value))
            if held.lasting[value] or held.worker[held.maker[value]] != worker:
                found.append((-nbytes, 2 * value + 1))
    node = held.order[tick]
    if held.worker[node] == worker:
        nbytes = held.scratch[node]
        for entry in range(held.input_firsts[node], held.input_firsts[node + 1]):
            nbytes += _live_bytes(held, held.inputs[entry], worker, tick)
        for entry in range(held.value_firsts[node], held.value_firsts[node + 1]):
            nbytes += _live_bytes(held, held.values[entry], worker, tick)
        found.append((-nbytes, 2 * len(held.maker)))
    found.sort()
    return found


@compiled
def _join(held: Held, nodes: list[int], node: int) -> None:
    """Add a node, and those that share its worker, to a set."""
    leader = held.leader[node]
    if not held.marked[leader]:
        held.marked[leader] = 1
        for entry in range(held.group_firsts[leader], held.group_firsts[leader + 1]):
            nodes.append(held.groups[entry])


@compiled
def _nodes_of(held: Held, number: int, worker: int, tick: int, moved: Numbers) -> list[int]:
    """Return the nodes of a set; none if they are more than `MOST_NODES` or one has moved too often."""
    nodes = [0 for _ in range(0)]
    if number == 2 * len(held.maker):
        _join(held, nodes, held.order[tick])
    else:
        value = number // 2
        if held.worker[held.maker[value]] == worker:
            _join(held, nodes, held.maker[value])
        first, last = held.reader_firsts[value], held.reader_firsts[value + 1]
        if number % 2:
            last = place_of_reader(held, value, tick + 1)
        else:
            first = place_of_reader(held, value, tick)
        for place in range(first, last):
            if held.worker[held.readers[place]] == worker and len(nodes) <= MOST_NODES:
                _join(held, nodes, held.readers[place])
    allowed = len(nodes) <= MOST_NODES
    for node in nodes:
        held.marked[held.leader[node]] = 0
        if moved[node] >= MOST_MOVES:
            allowed = False
    if not allowed:
        nodes.clear()
    return nodes


@compiled
def _move_all(held: Held, nodes: list[int], target: int) -> int:
    """Move all nodes of a set, and return the cost."""
    cost = 0
    for node in nodes:
        cost += move(held, node, target)
    return cost


@compiled
def _weighed(
    held: Held, limits: Numbers, nodes: list[int], worker: int, target: int, tick: int, freedom: int
) -> tuple[int, int]:
    """Return the cost of a move of a set, and the bytes that it frees at a tick; 0 if it is not allowed."""
    before = bytes_at(held.highest, held.added, held.leaves, worker, tick)
    peaks = zeros(held.workers)
    for each in range(held.workers):
        peaks[each] = peak(held.highest, held.leaves, each)
    cost = _move_all(held, nodes, target)
    freed = before - bytes_at(held.highest, held.added, held.leaves, worker, tick)
    rising, all_excess = False, 0
    for each in range(held.workers):
        new = peak(held.highest, held.leaves, each)
        if new > limits[each] and new > peaks[each]:
            rising = True
        all_excess += max(new - limits[each], 0) - max(peaks[each] - limits[each], 0)
    if rising and (freedom < LESS_IN_ALL or all_excess >= 0):
        freed = 0
    _move_all(held, nodes, worker)
    return cost, freed


@compiled
def _nearest(held: Held, limits: Numbers, nodes: list[int], worker: int) -> int:
    """Return the worker with room that makes or reads most bytes of what a set touches; -1 if none does."""
    near = zeros(held.workers)
    for node in nodes:
        for entry in range(held.input_firsts[node], held.input_firsts[node + 1]):
            value = held.inputs[entry]
            near[held.worker[held.maker[value]]] += held.sent[value]
        for entry in range(held.value_firsts[node], held.value_firsts[node + 1]):
            value = held.values[entry]
            first = held.stay_firsts[value]
            for stay in range(first, first + held.stay_counts[value]):
                near[held.stay_worker[stay]] += held.sent[value]
    found = -1
    for each in range(held.workers):
        roomy = peak(held.highest, held.leaves, each) < limits[each]
        if each != worker and roomy and near[each] > (near[found] if found >= 0 else 0):
            found = each
    return found


@compiled
def _roomiest(held: Held, limits: Numbers, worker: int) -> int:
    """Return the other worker that is furthest below its limit; the first of several."""
    found, most = -1, 0
    for each in range(held.workers):
        room = limits[each] - peak(held.highest, held.leaves, each)
        if each != worker and (found < 0 or room > most):
            found, most = each, room
    return found


@compiled
def _best(
    held: Held, limits: Numbers, moved: Numbers, worker: int, tick: int, number: int, freedom: int
) -> tuple[float, int, int]:
    """Return the least cost for each byte of moves of a set, its number and the target.

    The target is -1 if none is allowed.
    """
    nodes = _nodes_of(held, number, worker, tick, moved)
    least, found = 0.0, -1
    if len(nodes) == 0:
        return least, number, found
    nearest, roomiest = -1, -1
    if freedom == NEAR:
        nearest, roomiest = _nearest(held, limits, nodes, worker), _roomiest(held, limits, worker)
    for target in range(held.workers):
        if target != worker and (freedom > NEAR or target in (nearest, roomiest)):
            cost, freed = _weighed(held, limits, nodes, worker, target, tick, freedom)
            if freed > 0 and (found < 0 or cost / freed < least):
                least, found = cost / freed, target
    return least, number, found


@compiled
def relieve(held: Held, limits: Numbers, moved: Numbers, worker: int, freedom: int) -> int:
    """Make moves until a worker fits its limit at the tick where it holds most, and return their number.

    `moved` counts the moves of each node. Keys in the queue may be old, so each is found again when it is
    the least, and the move is made only if it still is.
    """
    tick = peak_tick(held.highest, held.leaves, worker)
    sets = _sets(held, worker, tick)
    count, done = 0, 0
    while done < len(sets) and bytes_at(held.highest, held.added, held.leaves, worker, tick) > limits[worker]:
        queue = [(0.0, 0, 0) for _ in range(0)]
        for place in range(done, min(done + BATCH, len(sets))):
            known = _best(held, limits, moved, worker, tick, sets[place][1], freedom)
            if known[2] >= 0:
                heappush(queue, known)
        while len(queue) and bytes_at(held.highest, held.added, held.leaves, worker, tick) > limits[worker]:
            known = _best(held, limits, moved, worker, tick, heappop(queue)[1], freedom)
            if known[2] < 0:
                continue
            if len(queue) and queue[0] < known:
                heappush(queue, known)
                continue
            nodes = _nodes_of(held, known[1], worker, tick, moved)
            _move_all(held, nodes, known[2])
            count += 1
            for node in nodes:
                moved[node] += 1
        done += BATCH
    return count
