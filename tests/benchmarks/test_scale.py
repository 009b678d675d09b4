"""Large graphs and overlap: the bound and the simulation of `benchmarks.scale`, and lanes that overlap."""

from __future__ import annotations

import itertools
import random

import pytest

import tofu
from benchmarks.scale import Dependences, in_order, layers_on_workers, slept, workers_of

LAYERS = 4
SLEEP_SECONDS = 0.006
TRIALS = 4


def random_dependences(seed: int, operations: int) -> tuple[Dependences, list[int]]:
    generator = random.Random(seed)
    before = [
        frozenset(other for other in range(each) if generator.random() < 0.3) for each in range(operations)
    ]
    after = [tuple(o for o, needed in enumerate(before) if each in needed) for each in range(operations)]
    return Dependences(tuple(before), tuple(after)), [generator.randrange(2) for _ in before]


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_below_every_order_and_the_simulation_is_one(seed: int) -> None:
    dependences, workers = random_dependences(seed, 6)
    starts = dependences.starts(workers)
    assert len(set(zip(workers, starts, strict=True))) == len(workers)
    for each, needed in enumerate(dependences.before):
        assert all(starts[other] < starts[each] for other in needed)
    lengths = {
        order: max(dependences.starts(workers, order)) + 1
        for order in itertools.permutations(range(len(workers)))
        if all(order.index(other) < order.index(each) for each in order for other in dependences.before[each])
    }
    assert dependences.bound(workers) <= min(lengths.values()) <= max(starts) + 1
    assert lengths[tuple(dependences.order(workers))] == max(starts) + 1


def test_layers_on_workers_overlap_as_their_dependences_allow() -> None:
    """With kernels that only sleep, a step takes hardly longer than simulated; the best of some trials."""
    graph = tofu.models.get("lstm", batch=2, layers=LAYERS, steps=8, hidden=4).training_graph()
    plan = layers_on_workers(graph, LAYERS, LAYERS)
    workers, dependences = workers_of(graph, plan), Dependences.of(graph)
    order = dependences.order(workers)
    simulated = (max(dependences.starts(workers, order)) + 1) * SLEEP_SECONDS
    assert simulated < len(workers) * SLEEP_SECONDS / 3
    steps = slept(tofu.lower(graph, in_order(plan, graph, order)), SLEEP_SECONDS, TRIALS)
    assert any(seconds < 1.25 * simulated for seconds in steps)
