"""Laws of frontiers: what they do if more is allowed, and if the machine changes, and what their ends are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import gradient_graph
from tofu.errors import PlanError
from tofu.partitioner import (
    Needs,
    SearchSettings,
    find_plan_within,
    least_peak_bytes,
    partition,
    peak_bytes,
)

from .every_plan import EveryPlan
from .training_graphs import one_layer

MACHINE = "dgx-h100"
"""A machine that is uniform: every device reaches every other in the same way."""

SPACES = [(False, False), (True, False), (False, True), (True, True)]
"""Whether plans may keep copies, and replicate tensors."""

law = partial(settings, deadline=None, suppress_health_check=list(HealthCheck))
seeds = given(seed=st.integers(0, 99))


@pytest.fixture(scope="module")
def graph():
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, no_bias=True, name="fc1")
        net = sym.Activation(net, act_type="relu")
        net = sym.FullyConnected(net, num_hidden=8, no_bias=True, name="fc2")
        return gradient_graph(net, {"data": (64, 32)}, ["fc1_weight", "fc2_weight"])


@cache
def frontier(graph, keep=True, replicate=True):
    return tofu.frontier(graph, 2, MACHINE, recompute=(1,), keep=keep, replicate=replicate)


def below(allowed, restricted):
    """Check that no point of a staircase is below another staircase."""
    for point in restricted.points:
        assert allowed.plan(memory=point.peak_bytes).step_seconds <= point.seconds


def small(toy, texts, seed, most=100):
    """Return a training graph with few plans."""
    random = np.random.default_rng(seed)
    while True:
        graph = one_layer(toy, texts, random, 2 + seed % 3)
        if EveryPlan(graph, 2, partition(graph, 2, keep=False)).count <= most:
            return graph


@pytest.mark.parametrize("more", SPACES)
@pytest.mark.parametrize("less", SPACES)
def test_allowing_copies_or_replication_never_raises_the_stairs(graph, less, more):
    if less != more and all(a <= b for a, b in zip(less, more, strict=True)):
        below(frontier(graph, *more), frontier(graph, *less))


@law(max_examples=2)
@seeds
def test_allowing_more_never_raises_the_stairs_of_small_graphs(toy, texts, seed):
    graph = small(toy, texts, seed)
    found = {space: frontier(graph, *space) for space in SPACES}
    for space, each in found.items():
        below(found[True, True], each)
        below(each, found[False, False])
        assert {point.plan.space.keep for point in each.points} <= {space[0], False}


def test_computing_again_takes_less_memory():
    """Activations that may be computed again take less memory, at the price of time."""
    wide = tofu.models.get("mlp", batch=4096).training_graph()
    kept, again = (
        tofu.frontier(wide, 2, "dgx-1-v100", recompute=allowed, keep=False) for allowed in ((1,), (1, 4))
    )
    below(again, kept)
    assert again.points[0].peak_bytes < kept.points[0].peak_bytes
    assert again.points[0].recompute == 4
    assert again.lower[0].peak_bytes <= kept.lower[0].peak_bytes


def test_a_machine_twice_as_slow_takes_twice_as_long(graph):
    """All rates are halved and all delays doubled, so every plan takes twice as long."""
    machine = tofu.machines.load(MACHINE)
    kind = machine.kinds[0]
    slow = replace(
        kind,
        bytes_per_second=kind.bytes_per_second / 2,
        flops_per_second=tuple((dtype, rate / 2) for dtype, rate in kind.flops_per_second),
        start_seconds=kind.start_seconds * 2,
    )
    levels = tuple(
        replace(each, bytes_per_second=each.bytes_per_second / 2, latency_seconds=each.latency_seconds * 2)
        for each in machine.levels
    )
    slower = replace(machine, kinds=(slow,) * len(machine.kinds), levels=levels)
    once, twice = frontier(graph), tofu.frontier(graph, 2, slower, recompute=(1,))
    assert [point.peak_bytes for point in twice.points] == [point.peak_bytes for point in once.points]
    for found in ("points", "lower"):
        for slow, fast in zip(getattr(twice, found), getattr(once, found), strict=True):
            assert slow.seconds == pytest.approx(2 * fast.seconds, rel=1e-3)


@law(max_examples=3)
@given(devices=st.permutations(range(8)))
def test_permuting_devices_of_a_uniform_machine_changes_nothing(graph, devices):
    permuted = replace(tofu.machines.load(MACHINE), worker_devices=tuple(devices))
    found = tofu.frontier(graph, 2, permuted, recompute=(1,))
    assert figures(found) == figures(frontier(graph))


def test_permuting_four_workers_changes_nothing(graph):
    machine = tofu.machines.load(MACHINE)
    found = [
        tofu.frontier(graph, 4, replace(machine, worker_devices=devices), recompute=(1,), keep=False)
        for devices in ((), (5, 2, 7, 0))
    ]
    assert figures(found[0]) == figures(found[1])
    assert len(found[0].points) > 1


def figures(found):
    return [(point.peak_bytes, point.seconds, point.plan.cost_bytes) for point in found.points]


@law(max_examples=3)
@seeds
def test_the_end_with_least_memory_is_proven_by_exact(toy, texts, seed):
    """The search within less memory looks at plans in another order, and proves that none fits."""
    graph = small(toy, texts, seed)
    least = frontier(graph, keep=False).points[0].peak_bytes
    needs = Needs(partial(peak_bytes, graph))
    for limit in (least, least - 1):
        found = find_plan_within(graph, 2, SearchSettings("exact", keep=False), limit, needs)
        assert (found.peak_bytes <= limit) == (limit == least)
    assert found.least_bytes > limit


@pytest.mark.parametrize("keep", [False, True])
def test_no_plan_of_exact_is_below(graph, keep):
    plan = partition(graph, 2, "exact", keep=keep)
    found = tofu.frontier(graph, 2, MACHINE, method="exact", recompute=(1,), keep=keep)
    taken = tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds
    assert found.plan(memory=peak_bytes(graph, plan)).step_seconds <= taken


@pytest.mark.parametrize("objective", ["bytes", "step-time"])
def test_the_fastest_end_is_no_slower_than_the_scalar_search(graph, objective):
    plan = tofu.partition(graph, 2, machine=MACHINE, objective=objective, memory="unlimited")
    assert frontier(graph).points[-1].seconds <= plan.step_seconds


def test_a_limit_below_the_least_memory_is_refused_with_what_is_proven(graph):
    least = least_peak_bytes(graph, 2)
    with pytest.raises(PlanError, match=rf"needs at least {least:,} \(proven\)"):
        tofu.frontier(graph, 2, MACHINE, memory=least - 1, recompute=(1,))
    assert tofu.frontier(graph, 2, MACHINE, frontier(graph).points[0].peak_bytes, recompute=(1,)).points
