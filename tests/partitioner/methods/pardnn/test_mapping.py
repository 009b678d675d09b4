"""Clusters are mapped as the conditions say, counted over nodes and values one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tofu.partitioner.methods.pardnn.balancing import balance, least_cost
from tofu.partitioner.methods.pardnn.clusters import Board, Clusters, board, clusters, look, map_to, weigh
from tofu.partitioner.methods.pardnn.mapping import by_criticality, map_near, wanted
from tofu.partitioner.methods.pardnn.slicing import Slices, slices
from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.levels import levels
from tofu.partitioner.methods.placement.wires import (
    Wires,
    mean_messages,
    mean_nanoseconds,
    wires,
)

from ..placement.random_graphs import joined_devices, training_like


@dataclass(frozen=True)
class Mapped:
    """A graph of which some clusters are mapped."""

    graph: PlacementGraph
    devices: PlacementDevices
    slices: Slices
    net: Wires
    known: Clusters
    state: Board

    def nodes(self, cluster: int) -> list[int]:
        return np.flatnonzero(self.slices.cluster == cluster).tolist()

    def unmapped(self) -> list[int]:
        return [each for each in range(self.slices.count) if self.state.worker[each] < 0]

    def span(self, cluster: int) -> tuple[float, float]:
        """Return from which top level to which one the work counts for a cluster."""
        known = levels(self.graph, self.devices, self.slices.cluster)
        end = known.top + mean_nanoseconds(self.graph, self.devices)
        path = [node for node in self.nodes(cluster) if self.slices.on_path[node]]
        edges = self.graph.edges
        parents = edges[edges[:, 1] == path[0], 0]
        children = edges[edges[:, 0] == path[-1], 1]
        lower = min(end[parents].max(initial=0), known.top[path[0]])
        upper = min(known.top[children].min(initial=end.max()), end.max())
        return lower, max(upper, known.top[path[-1]] + 0.5)

    def work(self, cluster: int) -> tuple[list[int], int]:
        """Return the work of each worker, and that of other clusters without one, in a cluster's span."""
        lower, upper = self.span(cluster)
        top = levels(self.graph, self.devices, self.slices.cluster).top
        mean = mean_nanoseconds(self.graph, self.devices)
        loads, unmapped = [0] * self.devices.workers, 0
        for node in np.flatnonzero((top >= lower) & (top < upper)).tolist():
            worker = self.state.worker[self.slices.cluster[node]]
            if worker >= 0:
                loads[worker] += int(self.graph.nanoseconds[self.devices.kind[worker], node])
            elif self.slices.cluster[node] != cluster:
                unmapped += int(mean[node])
        return loads, unmapped

    def talk(self, cluster: int) -> tuple[list[int], int]:
        """Return the messages between a cluster and each worker, and all of its messages."""
        cost = mean_messages(self.graph, self.devices).tolist()
        of = self.slices.cluster
        toward, total = [0] * self.devices.workers, 0
        for value, maker in enumerate(self.graph.maker.tolist()):
            readers = {int(of[node]) for node in self.graph.readers[value]} - {cluster}
            ends = readers if of[maker] == cluster else set()
            if of[maker] != cluster and cluster in of[self.graph.readers[value]]:
                ends = {int(of[maker])}
            targets = {
                ("worker", w) if (w := int(self.state.worker[each])) >= 0 else ("", each) for each in ends
            }
            total += len(targets) * cost[value]
            for kind, target in targets:
                if kind:
                    toward[target] += cost[value]
        return toward, total

    def weight(self, cluster: int, worker: int) -> int:
        return int(self.graph.nanoseconds[self.devices.kind[worker], self.nodes(cluster)].sum())


def begun(seed: int, workers: int, kinds: int = 1) -> Mapped:
    """Return a graph of which the primaries are mapped."""
    graph = training_like(seed, 30, kinds)
    devices = joined_devices(workers, kinds=kinds)
    found = slices(graph, devices, workers)
    known = clusters(graph, devices, found)
    return Mapped(graph, devices, found, wires(graph, devices), known, board(graph, devices, found, known))


def half_mapped(seed: int, workers: int, kinds: int = 1) -> Mapped:
    """Return a graph of which random clusters are mapped too."""
    state = begun(seed, workers, kinds)
    draw = np.random.default_rng(seed)
    for cluster in state.unmapped():
        if draw.random() < 0.5:
            map_to(state.known, state.state, cluster, int(draw.integers(workers)))
    return state


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 2))
def test_the_board_counts_messages_and_work(seed: int, workers: int, kinds: int) -> None:
    mapped = half_mapped(seed, workers, kinds)
    for cluster in mapped.unmapped():
        toward, total = mapped.talk(cluster)
        assert look(mapped.net, mapped.known, mapped.state, cluster) == total
        assert list(mapped.state.toward) == toward
        loads, unmapped = mapped.work(cluster)
        assert weigh(mapped.known, mapped.state, cluster) == unmapped
        assert list(mapped.state.loads) == loads


def asked_for(mapped: Mapped, cluster: int, maximal: bool) -> int:
    """Return the worker that the paper's conditions give a cluster; -1 if none holds."""
    (toward, total), (loads, unmapped) = mapped.talk(cluster), mapped.work(cluster)
    target = toward.index(max(toward))
    talk = toward[target]
    if not talk or not (talk == total or (maximal and talk > total / mapped.devices.workers)):
        return -1
    weight = mapped.weight(cluster, target)
    imbalance = sum(max(0, loads[target] + weight - each) for w, each in enumerate(loads) if w != target)
    covered = unmapped >= imbalance
    balanced = loads[target] + weight <= max(loads)
    talkative = talk > weight and talk > loads[target] and talk > unmapped
    return target if covered or balanced or talkative else -1


@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans())
def test_clusters_are_mapped_on_the_three_conditions(seed: int, workers: int, maximal: bool) -> None:
    mapped = half_mapped(seed, workers, 2)
    for cluster in mapped.unmapped():
        found = wanted(mapped.net, mapped.known, mapped.state, cluster, maximal)
        assert found == asked_for(mapped, cluster, maximal)


@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans())
@example(96, 3, True)
def test_rounds_look_again_next_to_what_was_mapped(seed: int, workers: int, maximal: bool) -> None:
    mapped, by_rounds = begun(seed, workers), begun(seed, workers)
    order = by_criticality(mapped.known, mapped.slices.primaries)
    map_near(mapped.net, mapped.known, mapped.state, order, maximal)
    turn, rounds = list(order), 0
    while turn and 2**rounds < mapped.graph.count:
        rounds += 1
        woken: set[int] = set()
        for cluster in turn:
            woken.discard(cluster)
            worker = asked_for(by_rounds, cluster, maximal) if by_rounds.state.worker[cluster] < 0 else -1
            if worker >= 0:
                map_to(by_rounds.known, by_rounds.state, cluster, worker)
                woken |= set(neighbours(by_rounds, cluster))
        turn = [each for each in order if each in woken]
    assert list(mapped.state.worker) == list(by_rounds.state.worker)


def neighbours(mapped: Mapped, cluster: int) -> Iterator[int]:
    """Yield the unmapped clusters that a cluster exchanges values with."""
    for value, maker in enumerate(mapped.graph.maker.tolist()):
        ends = {int(mapped.slices.cluster[node]) for node in [maker, *mapped.graph.readers[value]]}
        home = int(mapped.slices.cluster[maker])
        if cluster in ends:
            near = ends if home == cluster else {home}
            yield from (each for each in near if mapped.state.worker[each] < 0)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_balancing_takes_the_least_sum(seed: int, workers: int) -> None:
    mapped = half_mapped(seed, workers, 2)
    for cluster in mapped.unmapped():
        toward, _ = mapped.talk(cluster)
        loads, _ = mapped.work(cluster)
        costs = [
            (loads[each] + mapped.weight(cluster, each) + sum(toward) - toward[each], -toward[each], each)
            for each in range(workers)
        ]
        look(mapped.net, mapped.known, mapped.state, cluster)
        weigh(mapped.known, mapped.state, cluster)
        assert least_cost(mapped.known, mapped.state, cluster) == min(costs)[2]
    balance(mapped.net, mapped.known, mapped.state, by_criticality(mapped.known, mapped.slices.primaries))
    assert not mapped.unmapped()


@given(st.integers(0, 10_000))
def test_criticality_is_the_longest_path_through_a_whole_cluster(seed: int) -> None:
    mapped = begun(seed, 3)
    known = levels(mapped.graph, mapped.devices, mapped.slices.cluster)
    time = mean_nanoseconds(mapped.graph, mapped.devices)
    for cluster in range(mapped.slices.count):
        path = [node for node in mapped.nodes(cluster) if mapped.slices.on_path[node]]
        inside = int(time[path].sum())
        after = int(known.bottom[path[-1]] - time[path[-1]])
        assert mapped.known.criticality[cluster] == known.top[path[0]] + inside + after
        assert mapped.known.criticality[cluster] <= known.bottom.max()
    order = by_criticality(mapped.known, mapped.slices.primaries)
    falling = [(-mapped.known.criticality[each], each) for each in order]
    assert falling == sorted(falling)
    assert len(order) == mapped.slices.count - mapped.slices.primaries


def test_primaries_have_the_fastest_workers() -> None:
    mapped = begun(3, 3, 2)
    totals = mapped.graph.nanoseconds.sum(axis=1)[mapped.devices.kind]
    workers = list(mapped.state.worker[: mapped.slices.primaries])
    assert workers == sorted(range(3), key=lambda each: (totals[each], each))[: len(workers)]
