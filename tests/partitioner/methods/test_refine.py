"""Refinement is never worse than what it starts from, and finds what recursion misses."""

from __future__ import annotations

from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.partitioner import partition
from tofu.partitioner.solvers import elimination

from .training_graphs import spaces

TOY = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@spaces
@TOY
@given(data=st.data())
def test_refining_never_makes_its_starts_worse(data, draw_graph, replicate):
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([4, 6, 8, 12]))
    refined = partition(graph, workers, method="refine", replicate=replicate, keep=False)
    assert refined.lower_bound_bytes <= refined.cost_bytes
    for start in ("recursive", "equal-chop"):
        assert (
            refined.cost_bytes
            <= partition(graph, workers, method=start, replicate=replicate, keep=False).cost_bytes
        )


@TOY
@given(data=st.data())
def test_wide_neighbourhoods_never_make_plans_worse(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([4, 6, 8]))
    recursive = partition(graph, workers, keep=False)
    limit = data.draw(st.sampled_from([1, 50, 500]))
    with mock.patch.object(elimination, "TABLE_LIMIT", limit):
        started = partition(graph, workers, keep=False)
        refined = partition(graph, workers, method="refine", keep=False)
    refined.verify(graph)
    assert refined.lower_bound_bytes <= refined.cost_bytes <= started.cost_bytes
    assert refined.lower_bound_bytes <= recursive.cost_bytes


def chain(toy, texts):
    """Return a graph in which the best first step is not part of the best plan."""
    builder = toy()
    a, b, c = builder.tensor(16, 12), builder.tensor(12, 2), builder.tensor(2, 16)
    product = builder.apply(texts["MATMUL"], builder.apply(texts["MATMUL"], a, b), c)
    builder.apply(texts["RELU"], product)
    return builder.graph()


def test_refining_finds_what_recursion_misses(toy, texts):
    graph = chain(toy, texts)
    costs = {
        m: partition(graph, 8, method=m, replicate=False, keep=False).cost_bytes
        for m in ("recursive", "refine")
    }
    assert costs["refine"] < costs["recursive"]


def test_wide_neighbourhoods_are_searched_as_well(toy, texts, monkeypatch):
    graph = chain(toy, texts)
    best = partition(graph, 8, method="refine", replicate=False, keep=False)
    recursive = partition(graph, 8, replicate=False, keep=False)
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    wide = partition(graph, 8, method="refine", replicate=False, keep=False)
    assert wide.cost_bytes == best.cost_bytes < recursive.cost_bytes
    assert wide.unproven
    assert not best.unproven
