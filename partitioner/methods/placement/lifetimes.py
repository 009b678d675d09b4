"""The memory of workers under a placement: how long each of them holds which value.

The node at place `t` of the order runs at tick `t`. A value is stored on its maker's worker from the tick of
its maker to the last tick at which somebody takes it from there: a reader on that worker, or the first reader
on another one, which gets a copy. A *stay* is the time from the first to the last reader of a value on a
worker; a copy lives as long as that. Lasting values live throughout where they are made. Scratch lives at the
tick of its node. A value that overwrites another one is in the memory of that one, which must be lasting.

The lifetimes count ticks, not seconds, so they hold however long nodes and messages take, if memory is only
used again after those that have used it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....programs.offsets import place
from .graph import Integers, PlacementGraph

SCRATCH = -1
"""Stands for the value of memory that holds none."""


@dataclass(frozen=True, slots=True, eq=False)
class Stays:
    """From when to when each worker reads each value, ordered by value, then worker."""

    value: Integers
    """The value of each stay."""

    worker: Integers
    """The worker on which it is read."""

    first: Integers
    """The tick of the first reader there."""

    last: Integers
    """The tick of the last reader there."""

    readers: Integers
    """The number of readers there."""


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

    def live_bytes(self, worker: int) -> Integers:
        """Return the live bytes of a worker at each tick: `[ticks]`."""
        own = self.worker == worker
        change = np.zeros(self.ticks + 1, np.int64)
        np.add.at(change, self.first[own], self.nbytes[own])
        np.subtract.at(change, self.last[own] + 1, self.nbytes[own])
        return change.cumsum()[:-1]

    def arena_bytes(self, enough: Integers | None = None) -> Integers:
        """Return the size of each worker's arena; those of `enough` bytes are not made smaller."""
        return np.array(
            [
                place(self.nbytes[own], self.first[own], self.last[own], 0 if enough is None else enough[w])[
                    1
                ]
                for w, own in enumerate(self._of_workers())
            ],
            np.int64,
        )

    def live_at(self, worker: int, tick: int) -> Integers:
        """Return the intervals of a worker at a tick, the largest first, and of equal ones in their order."""
        live = (self.worker == worker) & (self.first <= tick) & (self.last >= tick)
        found = np.flatnonzero(live)
        return found[np.argsort(-self.nbytes[found], kind="stable")]

    def _of_workers(self) -> list[Integers]:
        """Return the intervals of each worker."""
        order = np.argsort(self.worker, kind="stable")
        return np.split(order, np.searchsorted(self.worker[order], np.arange(1, self.workers)))


def ticks_of(order: Integers) -> Integers:
    """Return the tick of each node."""
    ticks = np.empty(len(order), np.int64)
    ticks[order] = np.arange(len(order))
    return ticks


def stays(graph: PlacementGraph, tick: Integers, worker: Integers) -> Stays:
    """Return from when to when each worker reads each value."""
    value, reader = graph.readers.row_of_entries, graph.readers.entries
    sequence = np.lexsort((tick[reader], worker[reader], value))
    value, reader = value[sequence], reader[sequence]
    on, at = worker[reader], tick[reader]
    begins = np.ones(len(value), bool)
    begins[1:] = (value[1:] != value[:-1]) | (on[1:] != on[:-1])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(value)) - 1
    return Stays(
        value[starts], on[starts], at[starts], at[ends[: len(starts)]], ends[: len(starts)] - starts + 1
    )


def kept_until(graph: PlacementGraph, tick: Integers, worker: Integers, found: Stays) -> Integers:
    """Return the last tick at which each value is taken from its maker's worker: `[v]`."""
    until = tick[graph.maker].copy()
    at_home = found.worker == worker[graph.maker[found.value]]
    np.maximum.at(until, found.value, np.where(at_home, found.last, found.first))
    return until


def live_intervals(graph: PlacementGraph, workers: int, order: Integers, worker: Integers) -> LiveIntervals:
    """Return the memory that workers hold if nodes run in an order, which respects `graph.edges`."""
    tick = ticks_of(order)
    found = stays(graph, tick, worker)
    until = kept_until(graph, tick, worker, found)
    copies = found.worker != worker[graph.maker[found.value]]
    values = np.arange(len(graph.maker))
    parts = (
        (worker[graph.maker], worker, found.worker[copies]),
        (np.where(graph.lasting, 0, tick[graph.maker]), tick, found.first[copies]),
        (np.where(graph.lasting, graph.count - 1, until), tick, found.last[copies]),
        (graph.stored_bytes, graph.scratch_bytes, graph.sent_bytes[found.value[copies]]),
        (values, np.full(graph.count, SCRATCH), found.value[copies]),
    )
    columns = [np.concatenate(part) for part in parts]
    some = columns[3] > 0
    return LiveIntervals(workers, graph.count, *(column[some] for column in columns))
