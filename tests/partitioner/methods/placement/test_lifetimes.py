"""Lifetimes are those that a walk over ticks finds, one reader after the other."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.graph import PlacementGraph
from tofu.partitioner.methods.placement.lifetimes import SCRATCH, live_intervals
from tofu.support.integer_lists import IntegerLists

from .drawn_graphs import drawn, drawn_order, drawn_workers


def walked(graph: PlacementGraph, workers: int, order: np.ndarray, worker: np.ndarray) -> np.ndarray:
    """Return the live bytes `[worker, tick]` by the words of the definition."""
    tick = {int(node): place for place, node in enumerate(order)}
    live = np.zeros((workers, graph.count), np.int64)
    ends = {}
    for node in range(graph.count):
        live[worker[node], tick[node]] += graph.scratch_bytes[node]
    for value, maker in enumerate(graph.maker.tolist()):
        home, there = worker[maker], defaultdict(list)
        for reader in graph.readers[value].tolist():
            there[worker[reader]].append(tick[reader])
        taken = [tick[maker], *there.pop(home, []), *map(min, there.values())]
        for copy, read in there.items():
            live[copy, min(read) : max(read) + 1] += graph.sent_bytes[value]
            ends[value, copy] = max(read)
        if graph.lasting[value]:
            live[home] += graph.stored_bytes[value]
        else:
            live[home, tick[maker] : max(taken) + 1] += graph.stored_bytes[value]
            ends[value, home] = max(taken)
    done: set[tuple[int, int]] = set()
    for value, read in graph.in_place.tolist():
        node = graph.maker[value]
        free = (value, -1) not in done and (node, read) not in done
        if free and ends.get((read, worker[node])) == tick[node]:
            live[worker[node], tick[node]] -= graph.stored_bytes[value]
            done |= {(value, -1), (node, read)}
    return live


@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 25), workers=st.integers(1, 4))
def test_lifetimes_are_those_of_a_walk(seed: int, nodes: int, workers: int) -> None:
    generator = np.random.default_rng(seed)
    graph = drawn(generator, nodes)
    order, worker = drawn_order(generator, graph), drawn_workers(generator, graph, workers)
    found = live_intervals(graph, workers, order, worker)
    expected = walked(graph, workers, order, worker)
    assert [found.live_bytes(each).tolist() for each in range(workers)] == expected.tolist()
    assert found.peak_bytes.tolist() == expected.max(axis=1).tolist()
    assert (found.arena_bytes() >= found.peak_bytes).all()
    for each in range(workers):
        tick = int(expected[each].argmax())
        live = found.live_at(each, tick)
        assert found.nbytes[live].sum() == expected[each, tick]
        assert (np.diff(found.nbytes[live]) <= 0).all()


def test_a_copy_waits_for_its_first_reader() -> None:
    """One value with two readers elsewhere: it stays at home until the first of them runs."""
    graph = PlacementGraph(
        names=("make", "other", "early", "late"),
        nanoseconds=np.ones((1, 4), np.int64),
        maker=np.array([0]),
        sent_bytes=np.array([7]),
        stored_bytes=np.array([8]),
        readers=IntegerLists.of([[2, 3]]),
        after=IntegerLists.of([[], [], [], []]),
        leader=np.arange(4),
        lasting=np.array([False]),
        scratch_bytes=np.array([0, 5, 0, 0]),
    )
    found = live_intervals(graph, 2, np.arange(4), np.array([0, 0, 1, 1]))
    assert found.live_bytes(0).tolist() == [8, 13, 8, 0]
    assert found.live_bytes(1).tolist() == [0, 0, 7, 7]
    assert found.value.tolist() == [0, SCRATCH, 0]
    assert found.arena_bytes().tolist() == [13, 7]
