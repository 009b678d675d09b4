"""When the readers of values run: from the first to the last one on each worker.

The node at place `t` of the order runs at tick `t`. A *stay* is the time from the first to the last reader of
a value on a worker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....support.integers import Integers
from .graph import PlacementGraph


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
    """Return the last tick at which each value is taken from its maker's worker: `[v]`.

    Neighbours that share nodes take values for each of these nodes again.
    """
    until = tick[graph.maker].copy()
    at_home = found.worker == worker[graph.maker[found.value]]
    np.maximum.at(until, found.value, np.where(at_home, found.last, found.first))
    if len(graph.shared_nodes):
        value, reader = graph.readers.row_of_entries, graph.readers.entries
        again = graph.shared[graph.maker[value]] | graph.shared[reader]
        np.maximum.at(until, value[again], tick[reader[again]])
    return until
