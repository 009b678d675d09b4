"""A placement in a fixed order, with all that changes when nodes move, as loops take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....support.compiled import COMPILED, Numbers
from ....support.integer_lists import IntegerLists
from ....support.integers import Integers
from .graph import PlacementDevices, PlacementGraph
from .lifetimes import live_intervals
from .live_tree import built
from .neighbourhoods import with_neighbourhoods, with_places
from .stays import kept_until, stays, ticks_of
from .taking_over import bytes_taken_over, taken_pairs


class MovablePlacement(NamedTuple):
    """A placement in a fixed order, with all that changes when nodes move, as loops take it."""

    workers: int
    """The number of workers, to which nodes may move."""

    places: int
    """The number of workers and of neighbourhoods, which come after them and whose nodes do not move."""

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

    pair_firsts: Numbers
    """Where the pairs of each node begin in the next three, see `taking_over`."""

    pair_values: Numbers
    """The value of each pair that may take over memory."""

    pair_inputs: Numbers
    """The value of each pair whose memory that is."""

    pair_taken: Numbers
    """1 if the value of a pair takes over the memory, else 0."""

    taken_over: Numbers
    """The bytes of each node's values that take over memory."""

    may_host: Numbers
    """1 if a value's memory may be taken over, else 0."""

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
    workers, live = devices.workers, live_intervals(graph, devices.workers, order, worker)
    worker = with_neighbourhoods(graph, workers, worker)
    devices = with_places(graph, devices)
    tick = ticks_of(order)
    found = stays(graph, tick, worker)
    until = kept_until(graph, tick, worker, found)
    taken = taken_pairs(graph, tick, worker, found, until)
    counts = np.bincount(found.value, minlength=len(graph.maker))
    room = np.minimum(np.diff(graph.readers.firsts), devices.workers)
    firsts = np.concatenate([[0], np.cumsum(room)])
    at = firsts[found.value] + np.arange(len(found.value)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_readers = graph.readers.row_of_entries
    by_tick = graph.readers.entries[np.lexsort((tick[graph.readers.entries], of_readers))]
    groups = IntegerLists.grouped(graph.leader, np.arange(graph.count), graph.count)
    highest, added, leaves = built(live, devices.workers)

    def roomy(column: Integers) -> Numbers:
        spread = np.zeros(int(firsts[-1]), np.int64)
        spread[at] = column
        return _listed(spread)

    return MovablePlacement(
        workers,
        devices.workers,
        graph.count,
        _listed(tick),
        _listed(order),
        _listed(worker),
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
        _listed(until),
        _listed(graph.scratch_bytes),
        _listed(firsts),
        _listed(counts),
        roomy(found.worker),
        roomy(found.first),
        roomy(found.last),
        roomy(found.readers),
        _listed(np.searchsorted(graph.maker[graph.in_place[:, 0]], np.arange(graph.count + 1))),
        _listed(graph.in_place[:, 0]),
        _listed(graph.in_place[:, 1]),
        _listed(taken.astype(np.int64)),
        _listed(bytes_taken_over(graph, taken)),
        _listed(np.isin(np.arange(len(graph.maker)), graph.in_place[:, 1]).astype(np.int64)),
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
