"""Placements whose nodes move: what workers hold then, and the time that moves cost, all exactly.

A move of a node changes the stays of what it reads on two workers, the makers' intervals of these values, and
where its own values live. It takes time in its values and those that it reads, times the workers that read
each, times the logarithm of ticks. Moving the node back undoes it. Followers move with their leader, one
after the other: see `MovablePlacement.groups`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....support.compiled import COMPILED, Numbers, compiled
from .graph import IntegerLists, Integers, PlacementDevices, PlacementGraph
from .lifetimes import kept_until, live_intervals, stays, ticks_of
from .live_tree import add, built


class MovablePlacement(NamedTuple):
    """A placement in a fixed order, with all that changes when nodes move, as loops take it."""

    workers: int
    """The number of workers."""

    ticks: int
    """The number of ticks, which is that of nodes."""

    tick: Numbers
    """The tick of each node."""

    order: Numbers
    """The node of each tick."""

    worker: Numbers
    """The worker of each node."""

    leader: Numbers
    """The node whose worker each node shares."""

    group_firsts: Numbers
    """Where the nodes that share each leader's worker begin in `groups`."""

    groups: Numbers
    """The nodes of each leader, itself included."""

    input_firsts: Numbers
    """Where the values that each node reads begin in `inputs`."""

    inputs: Numbers
    """The values that nodes read."""

    value_firsts: Numbers
    """Where the values of each node begin in `values`."""

    values: Numbers
    """The values that nodes make."""

    reader_firsts: Numbers
    """Where the readers of each value begin in `readers`."""

    readers: Numbers
    """The readers of values, by tick."""

    maker: Numbers
    """The node that makes each value."""

    sent: Numbers
    """The bytes of a copy of each value."""

    stored: Numbers
    """The bytes of each value on its maker's worker."""

    lasting: Numbers
    """1 if a value lives throughout, else 0."""

    until: Numbers
    """The last tick at which each value is taken from its maker's worker."""

    scratch: Numbers
    """The scratch bytes of each node."""

    stay_firsts: Numbers
    """Where the room for the stays of each value begins in the next four."""

    stay_counts: Numbers
    """The number of stays of each value."""

    stay_worker: Numbers
    """The worker of each stay; those of a value are in any order."""

    stay_first: Numbers
    """The tick of the first reader of each stay."""

    stay_last: Numbers
    """The tick of the last reader of each stay."""

    stay_readers: Numbers
    """The number of readers of each stay."""

    nanoseconds: Numbers
    """The time of each node on each worker's kind of device: kind after kind."""

    kind: Numbers
    """The kind of each worker's device."""

    latency: Numbers
    """The nanoseconds of a message without bytes, from each worker to each."""

    per_byte: Numbers
    """The nanoseconds of each byte of a message, from each worker to each."""

    highest: Numbers
    """The trees of live bytes, see `live_tree`."""

    added: Numbers
    """The trees of live bytes, see `live_tree`."""

    leaves: int
    """The number of leaves of a tree."""

    marked: Numbers
    """Zeros for each node, which loops leave as they find them."""


def movable(
    graph: PlacementGraph, devices: PlacementDevices, order: Integers, worker: Integers
) -> MovablePlacement:
    """Return what workers hold under a placement whose nodes run in an order."""
    tick = ticks_of(order)
    found = stays(graph, tick, worker)
    counts = np.bincount(found.value, minlength=len(graph.maker))
    room = np.minimum(np.diff(graph.readers.firsts), devices.workers)
    firsts = np.concatenate([[0], np.cumsum(room)])
    at = firsts[found.value] + np.arange(len(found.value)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_readers = graph.readers.row_of_entries
    by_tick = graph.readers.entries[np.lexsort((tick[graph.readers.entries], of_readers))]
    groups = IntegerLists.grouped(graph.leader, np.arange(graph.count), graph.count)
    highest, added, leaves = built(live_intervals(graph, devices.workers, order, worker))

    def roomy(column: Integers) -> Numbers:
        spread = np.zeros(int(firsts[-1]), np.int64)
        spread[at] = column
        return _listed(spread)

    return MovablePlacement(
        devices.workers,
        graph.count,
        _listed(tick),
        _listed(order),
        _listed(worker.copy()),
        _listed(graph.leader),
        _listed(groups.firsts),
        _listed(groups.entries),
        _listed(graph.inputs.firsts),
        _listed(graph.inputs.entries),
        _listed(graph.values.firsts),
        _listed(graph.values.entries),
        _listed(graph.readers.firsts),
        _listed(by_tick),
        _listed(graph.maker),
        _listed(graph.sent_bytes),
        _listed(graph.stored_bytes),
        _listed(graph.lasting.astype(np.int64)),
        _listed(kept_until(graph, tick, worker, found)),
        _listed(graph.scratch_bytes),
        _listed(firsts),
        _listed(counts),
        roomy(found.worker),
        roomy(found.first),
        roomy(found.last),
        roomy(found.readers),
        _listed(graph.nanoseconds.ravel()),
        _listed(devices.kind),
        _listed(devices.latency.ravel()),
        _listed(devices.per_byte.ravel()),
        highest,
        added,
        leaves,
        _listed(np.zeros(graph.count, np.int64)),
    )


def _listed(values: Integers | npt.NDArray[np.float64]) -> Numbers:
    return np.ascontiguousarray(values) if COMPILED else values.tolist()


@compiled
def message(latency: Numbers, per_byte: Numbers, pair: int, nbytes: int) -> int:
    """Return the nanoseconds of a message between a pair of workers."""
    return latency[pair] + int(nbytes * per_byte[pair] + 0.5)  # type: ignore[no-any-return]


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
        tick = lasts[stay] if workers[stay] == home else firsts[stay]
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
            add(placed.highest, placed.added, placed.leaves, worker, old_first, old_last, -placed.sent[value])
        placed.stay_counts[value] -= 1
        last = placed.stay_firsts[value] + placed.stay_counts[value]
        placed.stay_worker[stay] = placed.stay_worker[last]
        placed.stay_first[stay] = placed.stay_first[last]
        placed.stay_last[stay] = placed.stay_last[last]
        placed.stay_readers[stay] = placed.stay_readers[last]
        if worker == home:
            return 0
        pair = home * placed.workers + worker
        return message(placed.latency, placed.per_byte, pair, placed.sent[value])
    if old_first == tick:
        place = place_of_reader(placed, value, tick) + 1
        while placed.worker[placed.readers[place]] != worker:
            place += 1
        placed.stay_first[stay] = placed.tick[placed.readers[place]]
        if worker != home:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                old_first,
                placed.stay_first[stay] - 1,
                -placed.sent[value],
            )
    elif old_last == tick:
        place = place_of_reader(placed, value, tick) - 1
        while placed.worker[placed.readers[place]] != worker:
            place -= 1
        placed.stay_last[stay] = placed.tick[placed.readers[place]]
        if worker != home:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                placed.stay_last[stay] + 1,
                old_last,
                -placed.sent[value],
            )
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
            add(placed.highest, placed.added, placed.leaves, worker, tick, tick, placed.sent[value])
        if worker == home:
            return 0
        pair = home * placed.workers + worker
        return message(placed.latency, placed.per_byte, pair, placed.sent[value])
    placed.stay_readers[stay] += 1
    if tick < placed.stay_first[stay]:
        if copied:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                tick,
                placed.stay_first[stay] - 1,
                placed.sent[value],
            )
        placed.stay_first[stay] = tick
    elif tick > placed.stay_last[stay]:
        if copied:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                placed.stay_last[stay] + 1,
                tick,
                placed.sent[value],
            )
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
            add(placed.highest, placed.added, placed.leaves, home, old + 1, end, placed.stored[value])
        else:
            add(placed.highest, placed.added, placed.leaves, home, end + 1, old, -placed.stored[value])
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
    add(placed.highest, placed.added, placed.leaves, source, begin, old, -placed.stored[value])
    add(placed.highest, placed.added, placed.leaves, target, begin, end, placed.stored[value])
    cost, sent = 0, placed.sent[value]
    first = placed.stay_firsts[value]
    for stay in range(first, first + placed.stay_counts[value]):
        worker = placed.stay_worker[stay]
        if worker != target:
            cost += message(placed.latency, placed.per_byte, target * placed.workers + worker, sent)
        if worker != source:
            cost -= message(placed.latency, placed.per_byte, source * placed.workers + worker, sent)
        if worker == source:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                placed.stay_first[stay],
                placed.stay_last[stay],
                placed.sent[value],
            )
        elif worker == target:
            add(
                placed.highest,
                placed.added,
                placed.leaves,
                worker,
                placed.stay_first[stay],
                placed.stay_last[stay],
                -placed.sent[value],
            )
    return cost


@compiled
def move(placed: MovablePlacement, node: int, target: int) -> int:
    """Move a node to another worker, and return the nanoseconds of computing and of messages added."""
    source, tick = placed.worker[node], placed.tick[node]
    if source == target:
        return 0
    add(placed.highest, placed.added, placed.leaves, source, tick, tick, -placed.scratch[node])
    add(placed.highest, placed.added, placed.leaves, target, tick, tick, placed.scratch[node])
    cost = placed.nanoseconds[placed.kind[target] * placed.ticks + node]
    cost -= placed.nanoseconds[placed.kind[source] * placed.ticks + node]
    for entry in range(placed.input_firsts[node], placed.input_firsts[node + 1]):
        cost += _reader_moves(placed, placed.inputs[entry], tick, source, target)
    for entry in range(placed.value_firsts[node], placed.value_firsts[node + 1]):
        cost += _value_moves(placed, placed.values[entry], source, target)
    placed.worker[node] = target
    return cost  # type: ignore[no-any-return]
