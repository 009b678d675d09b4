"""Placements whose nodes move: what workers hold then, and the time that moves cost, all exactly.

A move of a node changes the stays of what it reads on two workers, the makers' intervals of these values, and
where its own values live. It takes time in its values and those that it reads, times the workers that read
each, times the logarithm of ticks. Moving the node back undoes it. Followers move with their leader, one
after the other: see `MovablePlacement.groups`.
"""

from __future__ import annotations

from ....support.compiled import Numbers, compiled
from .live_tree import add
from .movable import MovablePlacement


@compiled
def message(latency: Numbers, per_byte: Numbers, pair: int, nbytes: int) -> int:
    """Return the nanoseconds of a message between a pair of workers."""
    return latency[pair] + int(nbytes * per_byte[pair] + 0.5)  # type: ignore[no-any-return]


@compiled
def _hold(placed: MovablePlacement, worker: int, first: int, last: int, nbytes: int) -> None:
    """Let a worker hold some more bytes, or fewer if they are negative, from the first to the last tick."""
    add(placed.highest, placed.added, placed.leaves, worker, first, last, nbytes)


@compiled
def stay_on(stay_worker: Numbers, first: int, count: int, worker: int) -> int:
    """Return which of `count` stays from the first on is on a worker; -1 if nobody reads there."""
    for stay in range(first, first + count):
        if stay_worker[stay] == worker:
            return stay
    return -1


@compiled
def _end_at_home(placed: MovablePlacement, value: int, home: int) -> int:
    """Return the last tick at which a value is taken from a worker, if that made it."""
    end = placed.tick[placed.maker[value]]
    first = placed.stay_firsts[value]
    workers, firsts, lasts = placed.stay_worker, placed.stay_first, placed.stay_last
    for stay in range(first, first + placed.stay_counts[value]):
        again = home >= placed.workers or workers[stay] >= placed.workers
        tick = lasts[stay] if again or workers[stay] == home else firsts[stay]
        if tick > end:
            end = tick
    return end  # type: ignore[no-any-return]


@compiled
def place_of_reader(placed: MovablePlacement, value: int, tick: int) -> int:
    """Return the first place among the readers of a value from which on they read at a tick or later."""
    low: int = placed.reader_firsts[value]
    high: int = placed.reader_firsts[value + 1]
    while low < high:
        middle = (low + high) // 2
        if placed.tick[placed.readers[middle]] < tick:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _leave(placed: MovablePlacement, value: int, tick: int, worker: int, home: int) -> int:
    """Take a reader from a worker, and return the nanoseconds of the message that this saves."""
    stay = stay_on(placed.stay_worker, placed.stay_firsts[value], placed.stay_counts[value], worker)
    old_first, old_last = placed.stay_first[stay], placed.stay_last[stay]
    placed.stay_readers[stay] -= 1
    if placed.stay_readers[stay] == 0:
        if worker != home:
            _hold(placed, worker, old_first, old_last, -placed.sent[value])
        placed.stay_counts[value] -= 1
        last = placed.stay_firsts[value] + placed.stay_counts[value]
        placed.stay_worker[stay] = placed.stay_worker[last]
        placed.stay_first[stay] = placed.stay_first[last]
        placed.stay_last[stay] = placed.stay_last[last]
        placed.stay_readers[stay] = placed.stay_readers[last]
        if worker == home:
            return 0
        pair = home * placed.places + worker
        return message(placed.latency, placed.per_byte, pair, placed.sent[value])
    if old_first == tick:
        place = place_of_reader(placed, value, tick) + 1
        while placed.worker[placed.readers[place]] != worker:
            place += 1
        placed.stay_first[stay] = placed.tick[placed.readers[place]]
        if worker != home:
            _hold(placed, worker, old_first, placed.stay_first[stay] - 1, -placed.sent[value])
    elif old_last == tick:
        place = place_of_reader(placed, value, tick) - 1
        while placed.worker[placed.readers[place]] != worker:
            place -= 1
        placed.stay_last[stay] = placed.tick[placed.readers[place]]
        if worker != home:
            _hold(placed, worker, placed.stay_last[stay] + 1, old_last, -placed.sent[value])
    return 0


@compiled
def _arrive(placed: MovablePlacement, value: int, tick: int, worker: int, home: int) -> int:
    """Bring a reader to a worker, and return the nanoseconds of the message that this adds."""
    stay = stay_on(placed.stay_worker, placed.stay_firsts[value], placed.stay_counts[value], worker)
    copied = worker != home
    if stay < 0:
        stay = placed.stay_firsts[value] + placed.stay_counts[value]
        placed.stay_counts[value] += 1
        placed.stay_worker[stay] = worker
        placed.stay_first[stay] = tick
        placed.stay_last[stay] = tick
        placed.stay_readers[stay] = 1
        if copied:
            _hold(placed, worker, tick, tick, placed.sent[value])
        if worker == home:
            return 0
        pair = home * placed.places + worker
        return message(placed.latency, placed.per_byte, pair, placed.sent[value])
    placed.stay_readers[stay] += 1
    if tick < placed.stay_first[stay]:
        if copied:
            _hold(placed, worker, tick, placed.stay_first[stay] - 1, placed.sent[value])
        placed.stay_first[stay] = tick
    elif tick > placed.stay_last[stay]:
        if copied:
            _hold(placed, worker, placed.stay_last[stay] + 1, tick, placed.sent[value])
        placed.stay_last[stay] = tick
    return 0


@compiled
def _reader_moves(placed: MovablePlacement, value: int, tick: int, source: int, target: int) -> int:
    """Move a reader of a value that is made elsewhere, and return the nanoseconds of messages added."""
    home = placed.worker[placed.maker[value]]
    cost = -_leave(placed, value, tick, source, home)
    cost += _arrive(placed, value, tick, target, home)
    old = placed.until[value]
    end = _end_at_home(placed, value, home)
    placed.until[value] = end
    if not placed.lasting[value]:
        if end > old:
            _hold(placed, home, old + 1, end, placed.stored[value])
        else:
            _hold(placed, home, end + 1, old, -placed.stored[value])
    return cost


@compiled
def _value_moves(placed: MovablePlacement, value: int, source: int, target: int) -> int:
    """Move a value with its maker, and return the nanoseconds of messages added."""
    begin, old, end = (
        placed.tick[placed.maker[value]],
        placed.until[value],
        _end_at_home(placed, value, target),
    )
    placed.until[value] = end
    if placed.lasting[value]:
        begin, old, end = 0, placed.ticks - 1, placed.ticks - 1
    _hold(placed, source, begin, old, -placed.stored[value])
    _hold(placed, target, begin, end, placed.stored[value])
    cost, sent = 0, placed.sent[value]
    first = placed.stay_firsts[value]
    for stay in range(first, first + placed.stay_counts[value]):
        worker = placed.stay_worker[stay]
        if worker != target:
            cost += message(placed.latency, placed.per_byte, target * placed.places + worker, sent)
        if worker != source:
            cost -= message(placed.latency, placed.per_byte, source * placed.places + worker, sent)
        if worker == source:
            _hold(placed, worker, placed.stay_first[stay], placed.stay_last[stay], placed.sent[value])
        elif worker == target:
            _hold(placed, worker, placed.stay_first[stay], placed.stay_last[stay], -placed.sent[value])
    return cost


@compiled
def _ends_with(placed: MovablePlacement, value: int, node: int) -> bool:
    """Return whether nothing takes a value from a node's worker after the node, which reads it."""
    worker = placed.worker[node]
    if placed.worker[placed.maker[value]] == worker:
        return not placed.lasting[value] and placed.until[value] == placed.tick[node]
    stay = stay_on(placed.stay_worker, placed.stay_firsts[value], placed.stay_counts[value], worker)
    return placed.stay_last[stay] == placed.tick[node]  # type: ignore[no-any-return]


@compiled
def _take_over(placed: MovablePlacement, node: int) -> None:
    """Let the values of a node take over what memory they can, as `taking_over.taken_pairs` says."""
    first, last = placed.pair_firsts[node], placed.pair_firsts[node + 1]
    if first == last:
        return
    nbytes, done = 0, -1
    for pair in range(first, last):
        value, read = placed.pair_values[pair], placed.pair_inputs[pair]
        takes = value != done and _ends_with(placed, read, node)
        for other in range(first, pair):
            if placed.pair_taken[other] and placed.pair_inputs[other] == read:
                takes = False
        placed.pair_taken[pair] = 1 if takes else 0
        if takes:
            done = value
            nbytes += placed.stored[value]
    change = placed.taken_over[node] - nbytes
    placed.taken_over[node] = nbytes
    _hold(placed, placed.worker[node], placed.tick[node], placed.tick[node], change)


@compiled
def _last_readers_take_over(placed: MovablePlacement, value: int, moved: int) -> None:
    """Let the last readers of a value take over what they can, and the one before a node that has moved."""
    if not placed.may_host[value]:
        return
    first = placed.stay_firsts[value]
    for stay in range(first, first + placed.stay_counts[value]):
        last = placed.stay_last[stay]
        _take_over(placed, placed.order[last])
        if placed.order[last] == moved and placed.stay_first[stay] < last:
            place = place_of_reader(placed, value, last) - 1
            while placed.worker[placed.readers[place]] != placed.stay_worker[stay]:
                place -= 1
            _take_over(placed, placed.readers[place])


@compiled
def move(placed: MovablePlacement, node: int, target: int) -> int:
    """Move a node to another worker, and return the nanoseconds of computing and of messages added."""
    source, tick = placed.worker[node], placed.tick[node]
    if source == target:
        return 0
    _hold(placed, source, tick, tick, placed.taken_over[node])
    placed.taken_over[node] = 0
    _hold(placed, source, tick, tick, -placed.scratch[node])
    _hold(placed, target, tick, tick, placed.scratch[node])
    cost = placed.nanoseconds[placed.kind[target] * placed.ticks + node]
    cost -= placed.nanoseconds[placed.kind[source] * placed.ticks + node]
    for entry in range(placed.input_firsts[node], placed.input_firsts[node + 1]):
        cost += _reader_moves(placed, placed.inputs[entry], tick, source, target)
    for entry in range(placed.value_firsts[node], placed.value_firsts[node + 1]):
        cost += _value_moves(placed, placed.values[entry], source, target)
    placed.worker[node] = target
    _take_over(placed, node)
    for entry in range(placed.input_firsts[node], placed.input_firsts[node + 1]):
        _last_readers_take_over(placed, placed.inputs[entry], node)
    for entry in range(placed.value_firsts[node], placed.value_firsts[node + 1]):
        _last_readers_take_over(placed, placed.values[entry], node)
    return cost  # type: ignore[no-any-return]
