"""Refinement accepts better placements that fit, counts emulations, and comes near the best placement."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.placement import refine
from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.partitioner.methods.placement.priorities import PRIORITIES, emulated
from tofu.partitioner.methods.placement.refine import deciding_path, improve, moves

from .every_placement import every_placement, least_time, small_case
from .random_graphs import joined_devices, training_like


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 60))
def test_better_placements_that_fit_are_accepted(seed: int, workers: int, budget: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    first = np.random.default_rng(seed).integers(0, workers, graph.count)[graph.leader]
    asked, emulations = [], 0

    def fits(worker: np.ndarray) -> bool:
        asked.append(worker)
        return len(asked) % 2 == 0

    def counted(*arguments: object) -> object:
        nonlocal emulations
        emulations += PRIORITIES
        return emulated(*arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "emulated", counted)
        found = improve(graph, devices, first, fits, budget)
    assert emulations <= budget
    start = emulated(graph, devices, first)[1].nanoseconds
    accepted = asked[1::2]
    ends = [start, *(emulated(graph, devices, worker)[1].nanoseconds for worker in accepted)]
    assert ends == sorted(set(ends), reverse=True)
    assert np.array_equal(found.worker, accepted[-1] if accepted else first)
    assert np.array_equal(found.worker, found.worker[graph.leader])
    assert np.array_equal(improve(graph, devices, first, lambda _: False, budget).worker, first)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_the_deciding_path_is_a_chain_of_causes(seed: int, workers: int) -> None:
    graph, devices = training_like(seed), joined_devices(workers)
    worker = np.random.default_rng(seed).integers(0, workers, graph.count)[graph.leader]
    found = emulated(graph, devices, worker)[1]
    end = found.start + graph.nanoseconds[0]
    path = deciding_path(found, end)
    assert end[path[-1]] == found.nanoseconds
    assert found.start[path[0]] == 0
    assert found.cause[path].tolist() == [-1, *path[:-1]]


def test_every_single_move_is_tried_on_two_workers() -> None:
    graph, devices = small_case(4, 1)
    worker = np.arange(graph.count) % 2
    tried = {tuple(each.tolist()) for each in moves(graph, devices, emulated(graph, devices, worker)[1])}
    assert tuple(worker.tolist()) not in tried
    for node in range(graph.count):
        flipped = worker.copy()
        flipped[node] = 1 - flipped[node]
        assert tuple(flipped.tolist()) in tried


def refined_ratio(seed: int, ratio: float, orders: int) -> float:
    """Return the time of the refined best placement over the least one."""
    graph, devices = small_case(seed, ratio)
    first = portfolio(graph, devices)[0].schedule.worker
    found = improve(graph, devices, first, lambda _: True, 300)
    return found.nanoseconds / least_time(graph, devices, orders)


@pytest.mark.parametrize(("ratio", "allowed"), [(0.1, 1.03), (1, 1.03), (10, 1.10)])
def test_refined_placements_are_near_the_best(ratio: float, allowed: float) -> None:
    assert mean(refined_ratio(seed, ratio, 0) for seed in range(100, 104)) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "allowed"), [(0.1, 1.03), (0.5, 1.03), (1, 1.03), (10, 1.10)])
def test_refined_placements_are_near_the_best_of_all_orders(ratio: float, allowed: float) -> None:
    assert mean(refined_ratio(seed, ratio, 50) for seed in range(30)) <= allowed


def test_all_placements_of_two_workers_are_enumerated() -> None:
    assert len({tuple(each) for each in every_placement(5)}) == 16
