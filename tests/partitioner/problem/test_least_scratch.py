"""The bound on arenas together with the scratch of kernels, against plans whose programs are prepared."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu import sym
from tofu.errors import PlanError
from tofu.partitioner import METHODS, least_peak_bytes, lower, partition
from tofu.runtime.footprint import footprint
from tofu.within_limit import needs_of

from ..methods.every_plan import EveryPlan


def needed(graph, plan):
    return footprint(lower(graph, plan)).peak_bytes


@st.composite
def networks(draw):
    """A layer or two, trained on a few samples."""
    sizes = st.sampled_from([2, 3, 5, 8])
    batch, features = draw(sizes), draw(sizes)
    value = sym.Variable("data")
    with sym.NameScope():
        for _ in range(draw(st.integers(0, 1))):
            value = sym.relu(sym.FullyConnected(value, num_hidden=draw(sizes), no_bias=draw(st.booleans())))
        value = sym.FullyConnected(value, num_hidden=draw(sizes), no_bias=draw(st.booleans()))
        loss = sym.SoftmaxOutput(value, name="softmax")
    shapes = {"data": (batch, features), "softmax_label": (batch,)}
    return tofu.training_graph(loss, shapes, draw(st.sampled_from(["sgd", "adam"])))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(networks(), st.sampled_from([1, 2, 3, 4, 6]), st.booleans(), st.integers(0, 2**32 - 1))
def test_no_plan_of_random_choices_needs_less(graph, workers, replicate, seed):
    free = partition(graph, workers, replicate=replicate, keep=False, feed="anywhere")
    every, chance = EveryPlan(graph, workers, free), np.random.default_rng(seed)
    least = least_peak_bytes(graph, workers, needs_of(graph).scratch)
    for _ in range(5):
        assert least <= needed(graph, every.plan([chance.integers(count) for count in every.shape]))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(networks(), st.sampled_from([1, 2, 3, 4, 6]), st.sampled_from(sorted({*METHODS} - {"manual"})))
def test_no_plan_of_a_method_needs_less(graph, workers, method):
    try:
        plan = partition(graph, workers, method)
    except PlanError:
        return
    assert least_peak_bytes(graph, workers, needs_of(graph).scratch) <= needed(graph, plan)


@pytest.mark.parametrize(
    ("name", "options"),
    [("mlp", {}), ("lenet", {"batch": 16}), ("lstm", {"batch": 4, "steps": 3})],
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_of_models_it_lies_between_the_bound_on_arenas_and_the_memory_of_plans(name, options, optimizer):
    graph = tofu.models.get(name, **options).training_graph(optimizer)
    for workers in (1, 2, 4):
        found = least_peak_bytes(graph, workers, needs_of(graph).scratch)
        assert least_peak_bytes(graph, workers) < found
        for method in ("recursive", "all-row", "equal-chop", "data-parallel"):
            for replicate in (False, True):
                assert found <= needed(graph, partition(graph, workers, method, replicate=replicate))


def test_an_update_shares_memory_or_has_its_results_apart():
    """Adam's kernel has three results. In place it needs scratch for them, otherwise they have buffers."""
    graph = tofu.models.get("mlp").training_graph("adam")
    weight = max(prod(t.shape) * t.itemsize for t in graph.tensors if t.name == "fc1_weight")
    more = least_peak_bytes(graph, 1, needs_of(graph).scratch) - least_peak_bytes(graph, 1)
    assert weight < more <= needed(graph, partition(graph, 1)) - least_peak_bytes(graph, 1)
