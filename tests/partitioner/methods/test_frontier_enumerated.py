"""Frontiers of training graphs of 2 to 4 operations, against every plan without copies, each one lowered.

The plans are those over 2 workers in which every operation is split along a variable and every tensor along a
dimension, or replicated, with inputs fed by batch. There are up to 1,024 of each graph, and 200 in
the fast part.
"""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.partitioner import partition, peak_bytes
from tofu.partitioner.methods.recombine import EVERY

from .every_plan import EveryPlan
from .training_graphs import one_layer

MACHINES = ("dgx-1-v100", "pcie-8", "k80-node", "p2.8xlarge")
FEW = [(seed, 200) for seed in range(6)]
ALL = [pytest.param(seed, EVERY, marks=pytest.mark.slow) for seed in range(40)]


@pytest.mark.parametrize(("seed", "most"), [*FEW, *ALL])
def test_the_frontier_is_that_of_enumeration(toy, texts, seed, most):
    random = np.random.default_rng(seed)
    machine = MACHINES[seed % len(MACHINES)]
    while True:
        graph = one_layer(toy, texts, random, 2 + seed % 3)
        every = EveryPlan(graph, 2, partition(graph, 2, keep=False))
        if every.count <= most:
            break
    pairs = {measured(graph, plan, machine) for plan in every.plans()}
    expected = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
    found = tofu.frontier(graph, 2, machine, "unlimited", recompute=(1,), keep=False)
    assert {(point.peak_bytes, point.seconds) for point in found.points} == expected
    for peak, seconds in pairs:
        assert seconds >= [stair.seconds for stair in found.lower if stair.peak_bytes <= peak][-1]
    for point in found.points:
        point.plan.verify(graph)
        assert measured(graph, point.plan, machine) == (point.peak_bytes, point.seconds)


def measured(graph, plan, machine):
    """Return the arena of a plan and the simulated time of its program."""
    return peak_bytes(graph, plan), tofu.simulate(tofu.lower(graph, plan), machine).seconds
