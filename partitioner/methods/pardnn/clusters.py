"""Clusters as mapping and balancing read them, and the mapping as it grows (ParDNN, section 3.1.2).

Levels are computed again with free messages inside clusters. The *criticality* of a cluster is the length of
the longest path that contains its own: top level of the first node, times of all, and bottom level of the
last without its time. The paper says that it is the length of the longest path through any node of the
cluster, which only holds if that path contains the cluster.

The *span* of a cluster reaches from the end of the last parent of its first node to the start of the first
child of its last node. It may be empty or reversed, and is then widened to contain the top levels of both.
Work is counted in *bins*, one for each different top level: a node counts whole in the bin of its top level.

A value crosses once to each worker or cluster that reads it. In the paper it crosses once for each reader.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....support.compiled import Numbers, compiled, filled, looped, zeros
from ....support.integer_lists import IntegerLists
from ..placement.graph import PlacementDevices, PlacementGraph
from ..placement.levels import levels
from ..placement.one_device import by_speed
from ..placement.wires import Wires, mean_nanoseconds, wires
from .slicing import Slices


class Clusters(NamedTuple):
    """Clusters, their nodes and their spans, before they are mapped."""

    of: Numbers
    """The cluster of each node."""

    member_firsts: Numbers
    """Where the nodes of each cluster begin in `members`."""

    members: Numbers
    """The nodes of all clusters."""

    bin: Numbers
    """The bin in which each node counts."""

    lower: Numbers
    """The first bin of each cluster's span."""

    upper: Numbers
    """The bin after the last one of each cluster's span."""

    criticality: Numbers
    """The length of the longest path that contains that of each cluster."""

    weights: Numbers
    """The time of each cluster, by kind of device."""


class Board(NamedTuple):
    """The workers of clusters so far, and the work that this gives."""

    worker: Numbers
    """The worker of each cluster; -1 if it is not mapped yet."""

    kind: Numbers
    """The kind of each worker."""

    times: Numbers
    """The time of each node, by kind of device."""

    mean: Numbers
    """The mean time of each node over workers."""

    work: Numbers
    """The work of each worker in bins: a Fenwick tree for each."""

    unmapped: Numbers
    """The mean work of clusters that are not mapped, in bins: a Fenwick tree."""

    toward: Numbers
    """The nanoseconds of messages between the cluster looked at last and each worker."""

    loads: Numbers
    """The work of each worker in the span of that cluster."""

    seen: Numbers
    """The last question that met each worker, then each cluster, then each value."""

    question: Numbers
    """The number of the last question."""


def clusters(graph: PlacementGraph, devices: PlacementDevices, found: Slices) -> Clusters:
    """Return what mapping asks of the clusters of a graph."""
    known = levels(graph, devices, found.cluster)
    mean = mean_nanoseconds(graph, devices)
    count = found.count
    path = np.flatnonzero(found.on_path)
    first, last = np.full(count, graph.count), np.zeros(count, np.int64)
    np.minimum.at(first, found.cluster[path], path)
    np.maximum.at(last, found.cluster[path], path)
    on_path = np.bincount(found.cluster[path], mean[path], count).astype(np.int64)
    steps, bins = np.unique(known.top, return_inverse=True)
    lower, upper = zeros(count), zeros(count)
    net, top, time = wires(graph, devices), looped(known.top), looped(mean)
    spans(net, top, time, looped(first), looped(last), lower, upper)
    members = IntegerLists.grouped(found.cluster, np.arange(graph.count), count)
    weights = [np.bincount(found.cluster, time, count).astype(np.int64) for time in graph.nanoseconds]
    return Clusters(
        of=looped(found.cluster),
        member_firsts=looped(members.firsts),
        members=looped(members.entries),
        bin=looped(bins),
        lower=looped(np.minimum(np.searchsorted(steps, lower), bins[first])),
        upper=looped(np.maximum(np.searchsorted(steps, upper), bins[last] + 1)),
        criticality=looped(known.top[first] + on_path + known.bottom[last] - mean[last]),
        weights=looped(np.stack(weights)),
    )


def board(graph: PlacementGraph, devices: PlacementDevices, found: Slices, known: Clusters) -> Board:
    """Return a board on which primary clusters have workers: the longest the fastest one, and so on."""
    workers, count = devices.workers, found.count
    bins = int(np.max(known.bin, initial=-1)) + 2
    begun = Board(
        worker=filled(count, -1),
        kind=looped(devices.kind),
        times=looped(graph.nanoseconds),
        mean=looped(mean_nanoseconds(graph, devices)),
        work=zeros(workers * bins),
        unmapped=zeros(bins),
        toward=zeros(workers),
        loads=zeros(workers),
        seen=zeros(workers + count + len(graph.maker)),
        question=zeros(1),
    )
    deal(known, begun, looped(by_speed(graph, devices)), found.primaries)
    return begun


@compiled
def spans(
    net: Wires, top: Numbers, time: Numbers, first: Numbers, last: Numbers, lower: Numbers, upper: Numbers
) -> None:
    """Write when the last parents of first nodes end, and when the first children of last nodes start."""
    end = 0
    for node in range(len(top)):
        end = max(end, top[node] + time[node])
    for number in range(len(first)):
        for place in range(net.input_firsts[first[number]], net.input_firsts[first[number] + 1]):
            maker = net.maker[net.inputs[place]]
            lower[number] = max(lower[number], top[maker] + time[maker])
        for place in range(net.before_firsts[first[number]], net.before_firsts[first[number] + 1]):
            other = net.before[place]
            lower[number] = max(lower[number], top[other] + time[other])
        node = last[number]
        upper[number] = end
        for place in range(net.after_firsts[node], net.after_firsts[node + 1]):
            upper[number] = min(upper[number], top[net.after[place]])
        for each in range(net.value_firsts[node], net.value_firsts[node + 1]):
            value = net.values[each]
            for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
                upper[number] = min(upper[number], top[net.readers[place]])


@compiled
def deal(known: Clusters, state: Board, workers: Numbers, primaries: int) -> None:
    """Count all work as unmapped, and map the primary clusters to the first workers of a list."""
    for node in range(len(known.of)):
        add(state.unmapped, 0, len(state.unmapped), known.bin[node], state.mean[node])
    for number in range(primaries):
        map_to(known, state, number, workers[number])


@compiled
def map_to(known: Clusters, state: Board, cluster: int, worker: int) -> None:
    """Map a cluster to a worker."""
    state.worker[cluster] = worker
    bins, row = len(state.unmapped), state.kind[worker] * len(known.of)
    for place in range(known.member_firsts[cluster], known.member_firsts[cluster + 1]):
        node = known.members[place]
        add(state.unmapped, 0, bins, known.bin[node], -state.mean[node])
        add(state.work, worker * bins, bins, known.bin[node], state.times[row + node])


@compiled
def add(tree: Numbers, base: int, bins: int, place: int, amount: int) -> None:
    """Add an amount to a bin of the Fenwick tree that begins at `base`."""
    place += 1
    while place < bins:
        tree[base + place] += amount
        place += place & -place


@compiled
def below(tree: Numbers, base: int, place: int) -> int:
    """Return the sum of all bins before one."""
    total = 0
    while place > 0:
        total += tree[base + place]
        place -= place & -place
    return total


@compiled
def look(net: Wires, known: Clusters, state: Board, cluster: int) -> int:
    """Write to the board what a cluster exchanges with each worker, and return what it exchanges at all."""
    workers, count = len(state.kind), len(known.lower)
    for worker in range(workers):
        state.toward[worker] = 0
    state.question[0] += 1
    of_inputs = state.question[0]
    total = 0
    for place in range(known.member_firsts[cluster], known.member_firsts[cluster + 1]):
        node = known.members[place]
        for number in range(net.input_firsts[node], net.input_firsts[node + 1]):
            value = net.inputs[number]
            maker = known.of[net.maker[value]]
            if maker != cluster and state.seen[workers + count + value] != of_inputs:
                state.seen[workers + count + value] = of_inputs
                total += net.message[value]
                if state.worker[maker] >= 0:
                    state.toward[state.worker[maker]] += net.message[value]
        for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
            total += look_out(net, known, state, cluster, net.values[number])
    return total


@compiled
def look_out(net: Wires, known: Clusters, state: Board, cluster: int, value: int) -> int:
    """Add what a cluster sends of one of its values to the board, and return it."""
    total = 0
    state.question[0] += 1
    for place in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
        other = known.of[net.readers[place]]
        if other == cluster:
            continue
        worker = state.worker[other]
        target = worker if worker >= 0 else len(state.kind) + other
        if state.seen[target] != state.question[0]:
            state.seen[target] = state.question[0]
            total += net.message[value]
            if worker >= 0:
                state.toward[worker] += net.message[value]
    return total


@compiled
def weigh(known: Clusters, state: Board, cluster: int) -> int:
    """Write to the board the work of workers in a cluster's span; return that of other unmapped clusters."""
    bins, lower, upper = len(state.unmapped), known.lower[cluster], known.upper[cluster]
    for worker in range(len(state.kind)):
        base = worker * bins
        state.loads[worker] = below(state.work, base, upper) - below(state.work, base, lower)
    unmapped = below(state.unmapped, 0, upper) - below(state.unmapped, 0, lower)
    for place in range(known.member_firsts[cluster], known.member_firsts[cluster + 1]):
        node = known.members[place]
        if lower <= known.bin[node] < upper:
            unmapped -= state.mean[node]
    return int(unmapped)
