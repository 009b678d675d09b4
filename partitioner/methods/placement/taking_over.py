"""Values that take over the memory of a value that their maker reads.

`PlacementGraph.in_place` has the pairs for which this is possible. It happens if the maker is the last node
that takes the other value from its worker, at home or as a copy. Of several pairs of a node the first that is
possible counts, for each value that it makes and each that it reads. The memory plan of programs has the same
rule (`programs.memory.in_place_hosts`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....support.integers import Integers
from .graph import PlacementGraph
from .stays import Stays


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """Which values take over which memory: that of other values at home, or that of copies."""

    by_value: Integers
    """The values that take over the memory of another value."""

    value: Integers
    """That value, for each of `by_value`."""

    by_stay: Integers
    """The values that take over the memory of a copy."""

    stay: Integers
    """The stay of that copy, for each of `by_stay`."""


def hosts(graph: PlacementGraph, tick: Integers, worker: Integers, found: Stays, until: Integers) -> Hosts:
    """Return which values take over which memory; `until` is that of `kept_until`."""
    taken = taken_pairs(graph, tick, worker, found, until)
    value, read = graph.in_place[taken].T
    at = worker[graph.maker[value]]
    home = worker[graph.maker[read]] == at
    away = ~home
    return Hosts(value[home], read[home], value[away], _stay_on(found, read[away], at[away]))


def taken_pairs(
    graph: PlacementGraph, tick: Integers, worker: Integers, found: Stays, until: Integers
) -> npt.NDArray[np.bool_]:
    """Return for each pair of `graph.in_place` whether the value takes over the memory."""
    value, read = graph.in_place.T
    if not len(value):
        return np.zeros(0, bool)
    node = graph.maker[value]
    home = worker[graph.maker[read]] == worker[node]
    able = home | ~graph.shared[node]
    ends = np.where(
        home, np.where(graph.lasting[read], -1, until[read]), found.last[_stay_on(found, read, worker[node])]
    )
    return _taken(graph, able & (ends == tick[node]))


def bytes_taken_over(graph: PlacementGraph, taken: npt.NDArray[np.bool_]) -> Integers:
    """Return the bytes of each node's values that take over memory, given which pairs do: `[n]`."""
    value = graph.in_place[taken, 0]
    found = np.zeros(graph.count, np.int64)
    np.add.at(found, graph.maker[value], graph.stored_bytes[value])
    return found


def most_taken_over(graph: PlacementGraph) -> Integers:
    """Return the most bytes of each node's values that can take over memory: `[n]`."""
    value, read = graph.in_place.T
    near = graph.leader[graph.maker[value]] == graph.leader[graph.maker[read]]
    return bytes_taken_over(graph, _taken(graph, ~(near & graph.lasting[read])))


def _stay_on(found: Stays, value: Integers, worker: Integers) -> Integers:
    """Return the stays of values on workers that read them."""
    workers = int(found.worker.max(initial=0)) + 1
    return np.searchsorted(found.value * workers + found.worker, value * workers + worker)


def _taken(graph: PlacementGraph, able: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of the pairs that are able to are taken, the first ones of each node first."""
    value, read = graph.in_place.T
    node = graph.maker[value]
    _, host = np.unique(node * len(graph.maker) + read, return_inverse=True)
    rank = _rank(node)
    hosted, taken = np.zeros(len(graph.maker), bool), np.zeros(len(host), bool)
    found = np.zeros(len(value), bool)
    for number in range(int(rank.max(initial=-1)) + 1):
        some = np.flatnonzero(able & (rank == number))
        some = some[~hosted[value[some]] & ~taken[host[some]]]
        hosted[value[some]], taken[host[some]], found[some] = True, True, True
    return found


def _rank(node: Integers) -> Integers:
    """Return the place of each entry among those of the same node, which follow each other."""
    begins = np.ones(len(node), bool)
    begins[1:] = node[1:] != node[:-1]
    starts = np.flatnonzero(begins)
    return np.arange(len(node)) - np.repeat(starts, np.diff(np.append(starts, len(node))))
