"""Limits of memory are met at the least bytes found, with bounds that hold for every plan that fits."""

from __future__ import annotations

import random
from functools import cache, partial
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu import PlanError
from tofu.partitioner import (
    METHODS,
    Needs,
    SearchSettings,
    find_plan_within,
    least_peak_bytes,
    memory_front,
    partition,
    peak_bytes,
)
from tofu.within_limit import needs_of


def fitting(graph, workers, limit, method):
    needs = Needs(partial(peak_bytes, graph))
    return find_plan_within(graph, workers, SearchSettings(method, keep=False), limit, needs)


@cache
def perceptron():
    return tofu.models.get("mlp").training_graph("adam")


@cache
def spaces(method):
    """The plans that may and that may not replicate what can be split."""
    return [
        partition(perceptron(), 8, method, replicate=replicate, keep=False) for replicate in (True, False)
    ]


@cache
def fitting_between(method, part):
    """A limit, `part` quarters of the way between the peaks of both spaces, and what fits it."""
    graph = perceptron()
    most, least = (peak_bytes(graph, plan) for plan in spaces(method))
    assert least < most
    limit = least + (most - least) * part // 4
    return limit, fitting(graph, 8, limit, method)


@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_limits_between_the_spaces_are_met(method):
    graph = perceptron()
    free, split = spaces(method)
    costs = []
    for part in (0, 2, 4):
        limit, found = fitting_between(method, part)
        assert found.peak_bytes == peak_bytes(graph, found.plan) <= limit
        assert free.lower_bound_bytes <= found.plan.lower_bound_bytes <= found.plan.cost_bytes
        assert found.plan.space.memory_bytes == (limit if part < 4 else None)
        found.plan.verify(graph)
        costs.append(found.plan.cost_bytes)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == free.cost_bytes <= costs[0] <= split.cost_bytes


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bounds_hold_for_every_plan_that_fits(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=4))
    workers = data.draw(st.sampled_from([2, 4]))
    others = [
        partition(graph, workers, method, replicate=replicate, keep=False)
        for method in ("recursive", "refine", "exact", "equal-chop", "all-row")
        for replicate in (False, True)
    ]
    needed = [peak_bytes(graph, other) for other in others]
    limit = data.draw(st.sampled_from(sorted(set(needed))))
    found = fitting(graph, workers, limit, data.draw(st.sampled_from(["recursive", "refine", "exact"])))
    if limit < least_peak_bytes(graph, workers):
        assert found.peak_bytes > limit
    for other, peak in zip(others, needed, strict=True):
        if peak <= limit:
            assert found.plan.lower_bound_bytes <= other.cost_bytes


def test_the_bound_of_exact_rises_if_memory_is_short():
    free, split = spaces("exact")
    bounds = []
    for part in (0, 2):
        _, found = fitting_between("exact", part)
        bounds.append(found.plan.lower_bound_bytes)
        assert bounds[-1] <= found.cost <= split.cost_bytes
    assert free.cost_bytes < bounds[-1]
    assert bounds == sorted(bounds, reverse=True)


def test_limits_that_no_plan_meets_are_refused_with_what_is_needed():
    graph = tofu.models.get("mlp").training_graph()
    least = least_peak_bytes(graph, 8, needs_of(graph).scratch)
    with pytest.raises(PlanError, match=f"need at least {least:,} bytes \\(proven\\)"):
        tofu.partition(graph, 8, memory=least - 1)
    arena = least_peak_bytes(graph, 8)
    assert fitting(graph, 8, arena - 1, "recursive").plan == partition(graph, 8, keep=False)


def test_methods_without_prices_make_one_plan():
    graph = tofu.models.get("mlp").training_graph()
    for name, method in METHODS.items():
        if not method.takes_prices:
            assert fitting(graph, 8, least_peak_bytes(graph, 8), name).plan == partition(
                graph, 8, name, keep=False
            )


def test_plans_by_time_fit_as_well():
    graph = tofu.models.get("mlp").training_graph("adam")
    timed = {"objective": "time", "machine": "pcie-8"}
    limit = peak_bytes(graph, partition(graph, 8, replicate=False, **timed))
    assert peak_bytes(graph, partition(graph, 8, **timed)) > limit
    found = find_plan_within(graph, 8, SearchSettings(**timed), limit, Needs(partial(peak_bytes, graph)))
    assert peak_bytes(graph, found.plan) <= limit
    assert found.plan.transfer_time is not None


@pytest.mark.parametrize("method", ["recursive", "refine"])
def test_the_front_goes_from_little_memory_to_the_best_plan(method):
    graph = tofu.models.get("mlp").training_graph("adam")
    settings = SearchSettings(method, keep=False)
    points = memory_front(graph, 8, settings, partial(peak_bytes, graph))
    assert 2 <= len(points) <= 5
    assert points[-1].cost <= partition(graph, 8, method, keep=False).cost_bytes
    for smaller, larger in pairwise(points):
        assert smaller.peak_bytes < larger.peak_bytes
        assert smaller.cost > larger.cost
    for point in points:
        assert point.peak_bytes == peak_bytes(graph, point.plan) >= least_peak_bytes(graph, 8)
        point.plan.verify(graph)


def test_without_a_limit_a_plan_takes_little_more_than_one_that_replicates_nothing():
    graph = tofu.models.get("lstm", batch=64, steps=2).training_graph()
    needs = Needs(partial(peak_bytes, graph))
    free, split = (
        partition(graph, 8, "refine", keep=False),
        partition(graph, 8, "refine", replicate=False, keep=False),
    )
    most = int(peak_bytes(graph, split) * 1.15)
    assert peak_bytes(graph, free) > most
    found = find_plan_within(graph, 8, SearchSettings("refine", keep=False), None, needs)
    assert found.peak_bytes <= most == found.plan.space.memory_bytes
    assert free.cost_bytes < found.plan.cost_bytes < split.cost_bytes
    lightest = found.larger[0]
    assert lightest.peak_bytes > most
    assert lightest.cost < found.cost
    assert found.larger[-1].cost <= lightest.cost
    unlimited = find_plan_within(graph, 8, SearchSettings("refine", keep=False), "unlimited", needs)
    assert unlimited.plan == free


def test_without_a_limit_layers_change_one_after_the_other():
    """Combined choices come nearer to the default limit than any plan of a search at one price."""
    graph = tofu.models.get("lstm", steps=5).training_graph()
    arena = partial(peak_bytes, graph)
    found = find_plan_within(graph, 8, SearchSettings(), None, Needs(arena))
    limit = found.plan.space.memory_bytes
    assert found.peak_bytes == arena(found.plan) <= limit
    found.plan.verify(graph)
    fronts = memory_front(graph, 8, SearchSettings(), arena, coarse=True)
    rungs = [point.cost for point in fronts if point.arena_bytes <= limit]
    assert found.cost < min(rungs)


def test_kernels_count():
    """A plan whose arena fits is not returned if its kernels take too much."""
    graph = tofu.models.get("mlp").training_graph()
    plan = partition(graph, 8, keep=False)
    arena = peak_bytes(graph, plan)
    for extra in (0, 1):
        needs = Needs(partial(peak_bytes, graph), lambda plan: 1000)
        found = find_plan_within(graph, 8, SearchSettings(keep=False), arena + 1000 - extra, needs)
        assert (found.plan.cost_bytes == plan.cost_bytes) == (extra == 0)
        assert found.peak_bytes == peak_bytes(graph, found.plan) + 1000 <= arena + 1000 - extra


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_random_limits_are_met_or_refused_rightly(name):
    """A plan fits or is said not to; what is refused as proven is below what any plan found needs."""
    graph = tofu.models.get(name, batch=16).training_graph()
    chance = random.Random(7)
    for workers in (2, 3, 8):
        least = least_peak_bytes(graph, workers)
        most = peak_bytes(graph, partition(graph, workers, keep=False))
        needed = []
        for _ in range(20):
            limit = chance.randint(least // 2, int(most * 1.2))
            found = fitting(graph, workers, limit, "recursive")
            assert found.peak_bytes == peak_bytes(graph, found.plan)
            assert found.peak_bytes <= limit or limit < most
            needed.append(found.peak_bytes)
        assert least <= min(needed)


@pytest.mark.parametrize("workers", [4, 8])
def test_refused_plans_are_above_the_limit(workers):
    """The peak that a refusal states counts the workspace of kernels."""
    graph = tofu.models.get("mlp").training_graph()
    needs = needs_of(graph)
    least = least_peak_bytes(graph, workers, needs.scratch)
    for limit in (least - 1, least + 1):
        found = find_plan_within(graph, workers, SearchSettings(keep=False), limit, needs)
        assert limit < found.peak_bytes
        assert found.least_bytes >= least
