"""Limits of memory are met at the least bytes found, with bounds that hold for every plan that fits."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu import PlanError
from tofu.partitioner import (
    METHODS,
    SearchSettings,
    find_plan_within,
    least_peak_bytes,
    partition,
    peak_bytes,
)
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.live_bytes import LiveBytes


def fitting(graph, workers, limit, method):
    return find_plan_within(graph, workers, SearchSettings(method), limit, partial(peak_bytes, graph))


@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_limits_between_the_spaces_are_met(method):
    graph = tofu.models.get("mlp").training_graph("adam")
    free, split = (
        partition(graph, 8, method, replicate=replicate, keep=False) for replicate in (True, False)
    )
    most, least = peak_bytes(graph, free), peak_bytes(graph, split)
    assert least < most
    costs = []
    for part in range(5):
        limit = least + (most - least) * part // 4
        found = fitting(graph, 8, limit, method)
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


def certainly_live(graph, plan):
    """The bytes of a worker that the bound counts: what lasts, and what is certainly live at the instant."""
    problem = build_problem(graph)
    live = LiveBytes.of(problem)
    dimensions = [
        plan.layouts[graph.tensors[problem.tensor_class.index(number)].name].dimensions
        for number in range(len(problem.shapes))
    ]
    return -(-(live.lasting_of(dimensions, plan.factors) + live.passing_bytes) // plan.workers)


def test_the_bound_of_exact_rises_if_memory_is_short():
    graph = tofu.models.get("mlp").training_graph("adam")
    free, split = (
        partition(graph, 8, "exact", replicate=replicate, keep=False) for replicate in (True, False)
    )
    peak = partial(certainly_live, graph)
    costs, bounds = [], []
    for part in range(4):
        limit = peak(split) + (peak(free) - peak(split)) * part // 4
        found = find_plan_within(graph, 8, SearchSettings("exact"), limit, peak)
        assert found.peak_bytes <= limit
        costs.append(found.plan.cost_bytes)
        bounds.append(found.plan.lower_bound_bytes)
    assert free.cost_bytes < bounds[0] <= costs[0] <= split.cost_bytes
    assert bounds == sorted(bounds, reverse=True)


def test_limits_that_no_plan_meets_are_refused_with_what_is_needed():
    graph = tofu.models.get("mlp").training_graph()
    least = least_peak_bytes(graph, 8)
    with pytest.raises(PlanError, match=f"every plan needs at least {least:,} bytes \\(proven\\)"):
        tofu.partition(graph, 8, memory=least - 1)
    assert fitting(graph, 8, least - 1, "recursive").plan == partition(graph, 8)


def test_methods_without_prices_make_one_plan():
    graph = tofu.models.get("mlp").training_graph()
    for name, method in METHODS.items():
        if not method.takes_prices:
            assert fitting(graph, 8, least_peak_bytes(graph, 8), name).plan == partition(graph, 8, name)


def test_plans_by_time_fit_as_well():
    graph = tofu.models.get("mlp").training_graph("adam")
    timed = {"objective": "time", "machine": "pcie-8"}
    limit = peak_bytes(graph, partition(graph, 8, replicate=False, **timed))
    assert peak_bytes(graph, partition(graph, 8, **timed)) > limit
    plan = tofu.partition(graph, 8, memory=limit, **timed)
    assert peak_bytes(graph, plan) <= limit
    assert plan.transfer_time is not None
