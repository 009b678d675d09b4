"""Plans within a limit of memory, against enumeration of every plan of a space, each of them lowered."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tofu.dataflow.graph import Role
from tofu.partitioner import Needs, SearchSettings, find_plan_within, least_peak_bytes, partition, peak_bytes
from tofu.partitioner.methods.by_cost import LOWERED

from .every_plan import EveryPlan

CHEAP = 200
"""The number of cheap plans whose arenas are limits."""


@st.composite
def chains(draw, toy, texts, most):
    """Layers on a batch that is longer than weights are, so that replicated weights pay and take memory."""
    builder = toy()
    width = st.sampled_from([2, 3, 4])
    value = builder.tensor(draw(st.sampled_from([5, 6, 8])), draw(width), role=Role.DATA)
    kinds = st.sampled_from(["MATMUL", "MATMUL", "MATMUL", "RELU", "NEIGHBOURS", "COLUMN_SUM", "UPDATE"])
    for kind in draw(st.lists(kinds, min_size=2, max_size=most)):
        shape = builder.tensors[value].shape
        if kind == "MATMUL":
            value = builder.apply(texts[kind], value, builder.tensor(shape[1], draw(width)))
        elif kind == "COLUMN_SUM":
            builder.apply(texts[kind], value)
        elif kind == "UPDATE":
            old = builder.tensor(*shape)
            builder.apply(texts[kind], old, value, builder.tensor(1, role=Role.SCALAR), aliases=(old,))
        else:
            value = builder.apply(texts[kind], value)
    return builder.graph()


def check(data, graph, workers, replicate):
    found = SearchSettings("exact", replicate=replicate, keep=False, feed="anywhere")
    free = partition(graph, workers, "exact", replicate=replicate, keep=False, feed="anywhere")
    every = EveryPlan(graph, workers, free)
    assume(every.count * len(graph.operations) <= LOWERED)  # then the effort suffices for a proof
    least, most = least_peak_bytes(graph, workers), peak_bytes(graph, free)
    cheap = np.argsort(every.costs(), axis=None, kind="stable")[:CHEAP:7]
    arenas = {peak_bytes(graph, every.plan(np.unravel_index(place, every.shape))) for place in cheap.tolist()}
    limit = data.draw(st.sampled_from(sorted({least, least - 1, *(a for a in arenas if a <= most)})))
    found = find_plan_within(graph, workers, found, limit, Needs(partial(peak_bytes, graph)))
    best, lightest = every.cheapest(limit)
    assert found.peak_bytes == peak_bytes(graph, found.plan)
    found.plan.verify(graph)
    if best is None:
        assert limit < found.least_bytes <= lightest
        assert found.peak_bytes > limit
    else:
        assert found.peak_bytes <= limit
        assert found.plan.cost_bytes == best == found.plan.lower_bound_bytes


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_that_split_everything(data, toy, texts):
    check(data, data.draw(chains(toy, texts, most=4)), 2, replicate=False)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_that_may_replicate(data, toy, texts):
    check(data, data.draw(chains(toy, texts, most=3)), 2, replicate=True)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_of_two_to_four_workers(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=4))
    check(data, graph, data.draw(st.sampled_from([2, 3, 4])), data.draw(st.booleans()))
