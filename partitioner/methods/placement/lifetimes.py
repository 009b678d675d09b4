"""The memory of workers under a placement: how long each of them holds which value.

The node at place `t` of the order runs at tick `t`. A value is stored on its maker's worker from the tick of
its maker to the last tick at which somebody takes it from there: a reader on that worker, or the first reader
on another one, which gets a copy. A *stay* is the time from the first to the last reader of a value on a
worker; a copy lives as long as that. Lasting values live throughout where they are made. Scratch lives at the
tick of its node. A value that overwrites another one is in the memory of that one, which must be lasting. If
a value takes over the memory of another one (`taking_over`), the other one's lifetime ends a tick earlier.

The lifetimes count ticks, not seconds, so they hold however long nodes and messages take, if memory is only
used again after those that have used it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....programs.offsets import place
from ....support.integers import Integers
from .graph import PlacementGraph
from .neighbourhoods import members, part_bytes, with_neighbourhoods
from .stays import kept_until, stays, ticks_of
from .taking_over import Hosts, hosts

SCRATCH = -1
"""Stands for the value of memory that holds none."""


@dataclass(frozen=True, eq=False)
class LiveIntervals:
    """Memory of workers from one tick to another, both included; memory of no bytes is left out."""

    workers: int
    """The number of workers."""

    ticks: int
    """The number of ticks."""

    worker: Integers
    """The worker whose memory it is."""

    first: Integers
    """The first tick."""

    last: Integers
    """The last tick."""

    nbytes: Integers
    """The size."""

    value: Integers
    """The value that it holds; `SCRATCH` if it is scratch."""

    shared: Integers
    """A number for each interval: those with equal ones follow each other in the same memory. It is negative
    if neighbours share a node, so that the interval is the same wherever the others are.
    """

    @cached_property
    def peak_bytes(self) -> Integers:
        """Return the most live bytes of each worker: `[workers]`."""
        width = self.ticks + 1
        keys = np.concatenate([self.worker * width + self.first, self.worker * width + self.last + 1])
        keys, place_of = np.unique(keys, return_inverse=True)
        change = np.zeros(len(keys), np.int64)
        np.add.at(change, place_of, np.concatenate([self.nbytes, -self.nbytes]))
        peaks = np.zeros(self.workers, np.int64)
        np.maximum.at(peaks, keys // width, change.cumsum())  # all that a worker holds has ended at its end
        return peaks

    @property
    def fixed(self) -> LiveIntervals:
        """Return the intervals that are the same wherever the nodes are that nobody shares."""
        own = self.shared < 0
        columns = [self.worker, self.first, self.last, self.nbytes, self.value, self.shared]
        return LiveIntervals(self.workers, self.ticks, *(column[own] for column in columns))

    def live_bytes(self, worker: int) -> Integers:
        """Return the live bytes of a worker at each tick: `[ticks]`."""
        own = self.worker == worker
        change = np.zeros(self.ticks + 1, np.int64)
        np.add.at(change, self.first[own], self.nbytes[own])
        np.subtract.at(change, self.last[own] + 1, self.nbytes[own])
        return change.cumsum()[:-1]

    def arena_bytes(self, enough: Integers | None = None) -> Integers:
        """Return the size of each worker's arena; those of `enough` bytes are not made smaller."""
        least = [0] * self.workers if enough is None else enough
        found = [place(*self._joined(own), least[w])[1] for w, own in enumerate(self._of_workers())]
        return np.array(found, np.int64)

    def _joined(self, own: Integers) -> tuple[Integers, Integers, Integers]:
        """Return sizes, first and last ticks of some intervals, those in the same memory as one."""
        _, starts, number = np.unique(self.shared[own], return_index=True, return_inverse=True)
        first, last = self.first[own][starts], self.last[own][starts]
        np.minimum.at(first, number, self.first[own])
        np.maximum.at(last, number, self.last[own])
        return self.nbytes[own][starts], first, last

    def live_at(self, worker: int, tick: int) -> Integers:
        """Return the intervals of a worker at a tick, the largest first, and of equal ones in their order."""
        live = (self.worker == worker) & (self.first <= tick) & (self.last >= tick)
        found = np.flatnonzero(live)
        return found[np.argsort(-self.nbytes[found], kind="stable")]

    def _of_workers(self) -> list[Integers]:
        """Return the intervals of each worker."""
        order = np.argsort(self.worker, kind="stable")
        return np.split(order, np.searchsorted(self.worker[order], np.arange(1, self.workers)))


def live_intervals(graph: PlacementGraph, workers: int, order: Integers, worker: Integers) -> LiveIntervals:
    """Return the memory that workers hold if nodes run in an order, which respects `graph.edges`."""
    tick = ticks_of(order)
    worker = with_neighbourhoods(graph, workers, worker)
    found = stays(graph, tick, worker)
    until = kept_until(graph, tick, worker, found)
    over = hosts(graph, tick, worker, found, until)
    last = found.last.copy()
    until[over.value] -= 1
    last[over.stay] -= 1
    copies = np.flatnonzero((found.worker != worker[graph.maker[found.value]]) & (found.worker < workers))
    values = np.arange(len(graph.maker))
    parts = (
        (worker[graph.maker], worker, found.worker[copies]),
        (np.where(graph.lasting, 0, tick[graph.maker]), tick, found.first[copies]),
        (np.where(graph.lasting, graph.count - 1, until), tick, last[copies]),
        (graph.stored_bytes, graph.scratch_bytes, graph.sent_bytes[found.value[copies]]),
        (values, np.full(graph.count, SCRATCH), found.value[copies]),
    )
    columns = [np.concatenate(part) for part in parts]
    columns.append(_in_same_memory(over, values, graph.count, copies, len(found.value)))
    if len(graph.shared_nodes):
        columns = _of_neighbours(graph, workers, columns, _fetched(graph, tick, worker))
    some = (columns[3] > 0) & (columns[1] <= columns[2])
    return LiveIntervals(workers, graph.count, *(column[some] for column in columns))


def _fetched(graph: PlacementGraph, tick: Integers, worker: Integers) -> list[Integers]:
    """Return the columns of the parts that neighbourhoods fetch for a tick."""
    value, reader = graph.readers.row_of_entries, graph.readers.entries
    some = graph.shared[reader] & (worker[reader] != worker[graph.maker[value]])
    value, reader = value[some], reader[some]
    at, nbytes = tick[reader], part_bytes(graph, graph.sent_bytes[value])
    return [worker[reader], at, at, nbytes, value, np.full(len(value), -1)]


def _of_neighbours(
    graph: PlacementGraph, workers: int, columns: list[Integers], fetched: list[Integers]
) -> list[Integers]:
    """Return the columns of `LiveIntervals` with the workers of a neighbourhood instead of it."""
    *rest, memory = [np.concatenate(pair) for pair in zip(columns, fetched, strict=True)]
    count = len(memory)
    memory[len(columns[0]) :] = np.arange(len(columns[0]), count)
    alone, together = np.flatnonzero(rest[0] < workers), np.flatnonzero(rest[0] >= workers)
    worker, which = members(graph, workers, rest[0][together])
    several = together[which]
    found = [np.concatenate([column[alone], column[several]]) for column in (*rest, memory)]
    found[0][len(alone) :] = worker
    found[5][len(alone) :] = -1 - found[5][len(alone) :] - count * worker
    return found


def _in_same_memory(over: Hosts, values: Integers, nodes: int, copies: Integers, stays: int) -> Integers:
    """Return `LiveIntervals.shared` for values, then scratch of nodes, then copies, given as stays."""
    before = len(values) + nodes
    of_stay = np.full(stays, -1)
    of_stay[copies] = before + np.arange(len(copies))
    found = np.arange(before + len(copies))
    found[over.by_value] = over.value
    found[over.by_stay] = of_stay[over.stay]
    while True:
        further = found[found]
        if (further == found).all():
            return found
        found = further
