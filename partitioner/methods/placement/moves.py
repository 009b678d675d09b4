"""What workers hold while nodes move between them, and the time that moves cost, all exactly.

A move of a node changes the stays of what it reads on two workers, the makers' intervals of these values, and
where its own values live. It takes time in its values and those that it reads, times the workers that read
each, times the logarithm of ticks. Moving the node back undoes it. Followers move with their leader, one
after the other: see `Held.groups`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....support.compiled import COMPILED, Numbers, compiled
from .graph import Devices, Integers, PlacementGraph, Rows
from .lifetimes import kept_until, live_intervals, stays, ticks_of
from .live_tree import add, built


class Held(NamedTuple):
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
    """The bytes of each value where it is made."""

    lasting: Numbers
    """1 if a value lives throughout, else 0."""

    until: Numbers
    """The last tick at which each value is taken from where it is made."""

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


def held(graph: PlacementGraph, devices: Devices, order: Integers, worker: Integers) -> Held:
    """Return what workers hold under a placement whose nodes run in an order."""
    tick = ticks_of(order)
    found = stays(graph, tick, worker)
    counts = np.bincount(found.value, minlength=len(graph.maker))
    room = np.minimum(np.diff(graph.readers.firsts), devices.workers)
    firsts = np.concatenate([[0], np.cumsum(room)])
    at = firsts[found.value] + np.arange(len(found.value)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_readers = graph.readers.row_of_entries
    by_tick = graph.readers.entries[np.lexsort((tick[graph.readers.entries], of_readers))]
    groups = Rows.grouped(graph.leader, np.arange(graph.count), graph.count)
    highest, added, leaves = built(live_intervals(graph, devices.workers, order, worker))

    def roomy(column: Integers) -> Numbers:
        spread = np.zeros(int(firsts[-1]), np.int64)
        spread[at] = column
        return _listed(spread)

    return Held(
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
def change(held: Held, worker: int, first: int, last: int, nbytes: int) -> None:
    """Add bytes to what a worker holds."""
    add(held.highest, held.added, held.leaves, worker, first, last, nbytes)


@compiled
def message(held: Held, value: int, source: int, target: int) -> int:
    """Return the nanoseconds in which a value goes from one worker to another one."""
    if source == target:
        return 0
    pair = source * held.workers + target
    return held.latency[pair] + int(held.sent[value] * held.per_byte[pair] + 0.5)  # type: ignore[no-any-return]


@compiled
def stay_of(held: Held, value: int, worker: int) -> int:
    """Return the place of the stay of a value on a worker; -1 if nobody reads it there."""
    first = held.stay_firsts[value]
    for stay in range(first, first + held.stay_counts[value]):
        if held.stay_worker[stay] == worker:
            return stay
    return -1


@compiled
def _end_at_home(held: Held, value: int, home: int) -> int:
    """Return the last tick at which a value is taken from a worker, if that made it."""
    end = held.tick[held.maker[value]]
    first = held.stay_firsts[value]
    for stay in range(first, first + held.stay_counts[value]):
        tick = held.stay_last[stay] if held.stay_worker[stay] == home else held.stay_first[stay]
        if tick > end:
            end = tick
    return end  # type: ignore[no-any-return]


@compiled
def place_of_reader(held: Held, value: int, tick: int) -> int:
    """Return the first place among the readers of a value from which on they read at a tick or later."""
    low, high = held.reader_firsts[value], held.reader_firsts[value + 1]
    while low < high:
        middle = (low + high) // 2
        if held.tick[held.readers[middle]] < tick:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _leave(held: Held, value: int, tick: int, worker: int, home: int) -> int:
    """Take a reader from a worker, and return the nanoseconds of the message that this saves."""
    stay = stay_of(held, value, worker)
    old_first, old_last = held.stay_first[stay], held.stay_last[stay]
    held.stay_readers[stay] -= 1
    if held.stay_readers[stay] == 0:
        if worker != home:
            change(held, worker, old_first, old_last, -held.sent[value])
        held.stay_counts[value] -= 1
        last = held.stay_firsts[value] + held.stay_counts[value]
        held.stay_worker[stay] = held.stay_worker[last]
        held.stay_first[stay] = held.stay_first[last]
        held.stay_last[stay] = held.stay_last[last]
        held.stay_readers[stay] = held.stay_readers[last]
        return message(held, value, home, worker)
    if old_first == tick:
        place = place_of_reader(held, value, tick) + 1
        while held.worker[held.readers[place]] != worker:
            place += 1
        held.stay_first[stay] = held.tick[held.readers[place]]
        if worker != home:
            change(held, worker, old_first, held.stay_first[stay] - 1, -held.sent[value])
    elif old_last == tick:
        place = place_of_reader(held, value, tick) - 1
        while held.worker[held.readers[place]] != worker:
            place -= 1
        held.stay_last[stay] = held.tick[held.readers[place]]
        if worker != home:
            change(held, worker, held.stay_last[stay] + 1, old_last, -held.sent[value])
    return 0


@compiled
def _arrive(held: Held, value: int, tick: int, worker: int, home: int) -> int:
    """Bring a reader to a worker, and return the nanoseconds of the message that this adds."""
    stay = stay_of(held, value, worker)
    copied = worker != home
    if stay < 0:
        stay = held.stay_firsts[value] + held.stay_counts[value]
        held.stay_counts[value] += 1
        held.stay_worker[stay] = worker
        held.stay_first[stay] = tick
        held.stay_last[stay] = tick
        held.stay_readers[stay] = 1
        if copied:
            change(held, worker, tick, tick, held.sent[value])
        return message(held, value, home, worker)
    held.stay_readers[stay] += 1
    if tick < held.stay_first[stay]:
        if copied:
            change(held, worker, tick, held.stay_first[stay] - 1, held.sent[value])
        held.stay_first[stay] = tick
    elif tick > held.stay_last[stay]:
        if copied:
            change(held, worker, held.stay_last[stay] + 1, tick, held.sent[value])
        held.stay_last[stay] = tick
    return 0


@compiled
def _reader_moves(held: Held, value: int, tick: int, source: int, target: int) -> int:
    """Move a reader of a value that is made elsewhere, and return the nanoseconds of messages added."""
    home = held.worker[held.maker[value]]
    cost = -_leave(held, value, tick, source, home)
    cost += _arrive(held, value, tick, target, home)
    old = held.until[value]
    end = _end_at_home(held, value, home)
    held.until[value] = end
    if not held.lasting[value]:
        if end > old:
            change(held, home, old + 1, end, held.stored[value])
        else:
            change(held, home, end + 1, old, -held.stored[value])
    return cost


@compiled
def _value_moves(held: Held, value: int, source: int, target: int) -> int:
    """Move a value with its maker, and return the nanoseconds of messages added."""
    begin, old, end = held.tick[held.maker[value]], held.until[value], _end_at_home(held, value, target)
    held.until[value] = end
    if held.lasting[value]:
        begin, old, end = 0, held.ticks - 1, held.ticks - 1
    change(held, source, begin, old, -held.stored[value])
    change(held, target, begin, end, held.stored[value])
    cost = 0
    first = held.stay_firsts[value]
    for stay in range(first, first + held.stay_counts[value]):
        worker = held.stay_worker[stay]
        cost += message(held, value, target, worker) - message(held, value, source, worker)
        if worker == source:
            change(held, worker, held.stay_first[stay], held.stay_last[stay], held.sent[value])
        elif worker == target:
            change(held, worker, held.stay_first[stay], held.stay_last[stay], -held.sent[value])
    return cost


@compiled
def move(held: Held, node: int, target: int) -> int:
    """Move a node to another worker, and return the nanoseconds of computing and of messages added."""
    source, tick = held.worker[node], held.tick[node]
    if source == target:
        return 0
    change(held, source, tick, tick, -held.scratch[node])
    change(held, target, tick, tick, held.scratch[node])
    cost = held.nanoseconds[held.kind[target] * held.ticks + node]
    cost -= held.nanoseconds[held.kind[source] * held.ticks + node]
    for entry in range(held.input_firsts[node], held.input_firsts[node + 1]):
        cost += _reader_moves(held, held.inputs[entry], tick, source, target)
    for entry in range(held.value_firsts[node], held.value_firsts[node + 1]):
        cost += _value_moves(held, held.values[entry], source, target)
    held.worker[node] = target
    return cost  # type: ignore[no-any-return]
