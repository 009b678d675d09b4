"""ParDNN's heuristics for memory move what the paper moves, and never make the largest excess worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.pardnn.heuristics import (
    heuristic_one,
    heuristic_two,
    move_costs,
    potentials,
)
from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.lifetimes import live_intervals
from tofu.support.integer_lists import IntegerLists

from ..placement.drawn_graphs import drawn, drawn_devices, drawn_order, drawn_workers


def example() -> PlacementGraph:
    """Return a weight, a node that reads it, and two nodes that read what that one makes."""
    return PlacementGraph(
        names=("weight", "make", "read", "read late"),
        nanoseconds=np.array([[0, 10, 20, 30]]),
        maker=np.array([0, 1]),
        sent_bytes=np.array([100, 8]),
        stored_bytes=np.array([100, 8]),
        readers=IntegerLists.of([[1], [2, 3]]),
        after=IntegerLists.of([[]] * 4),
        leader=np.arange(4),
        lasting=np.array([True, False]),
        scratch_bytes=np.zeros(4, np.int64),
    )


def two_devices(*memory: int) -> PlacementDevices:
    between = ~np.eye(2, dtype=bool)
    return PlacementDevices(np.zeros(2, np.int64), 5 * between, 1.0 * between, np.array(memory))


def test_potentials_and_costs_are_those_of_the_paper() -> None:
    graph, here = example(), np.zeros(4, np.int64)
    assert potentials(graph, np.arange(4), here, 0, 2).tolist() == [100, 8, 0, 8]
    assert move_costs(graph, two_devices(1, 1), here).tolist() == [105, 10 + 105 + 13, 20 + 13, 30 + 13]


def test_the_first_heuristic_moves_the_cheapest_node_that_frees_enough() -> None:
    """The late reader costs 43 and the weight 105, but only the weight frees 50 bytes."""
    graph, order = example(), np.arange(4)
    assert heuristic_one(graph, two_devices(108, 108), order, np.zeros(4, np.int64)).tolist() == [0] * 4
    assert heuristic_one(graph, two_devices(58, 150), order, np.zeros(4, np.int64))[0] == 1


def test_the_second_heuristic_spreads_what_lasts() -> None:
    graph = replace(example(), lasting=np.ones(2, bool), stored_bytes=np.array([100, 90]))
    graph = replace(graph, readers=IntegerLists.of([[], []]))
    assert heuristic_two(graph, two_devices(500, 500), np.arange(4), np.zeros(4, np.int64)).tolist() == [
        1,
        0,
        0,
        0,
    ]


@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 18), workers=st.integers(2, 4))
def test_neither_makes_the_worst_worse(seed: int, nodes: int, workers: int) -> None:
    generator = np.random.default_rng(seed)
    graph = drawn(generator, nodes)
    devices = drawn_devices(generator, workers, generator.integers(200, 800, workers).tolist())
    order, worker = drawn_order(generator, graph), drawn_workers(generator, graph, workers)
    before = live_intervals(graph, workers, order, worker).peak_bytes
    spread = heuristic_two(graph, devices, order, worker)
    after = live_intervals(graph, workers, order, spread).peak_bytes
    assert (spread == spread[graph.leader]).all()
    moved = heuristic_one(graph, devices, order, worker)
    assert (moved == moved[graph.leader]).all()
    if (before <= devices.memory_bytes).all():
        assert (moved == worker).all()
    assert (after / devices.memory_bytes).max() <= (before / devices.memory_bytes).max()
