"""What every method owes: a plan that verifies, lowers, and costs what a recount says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.plans.plan import contributors

TOY = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 2, 4, 6, 8])
def test_plans_verify_and_lower(graph, method, workers):
    plan = partition(graph, workers, method=method)
    assert plan.method == method
    plan.verify(graph)
    assert lower(graph, plan).planned_bytes == plan.cost_bytes
    totals = count_bytes(graph, plan.layouts, plan.strategies, plan.factors)
    assert [after - before for before, after in pairwise(totals)] == list(plan.step_cost_bytes)
    assert totals[-1] == plan.cost_bytes == sum(entry.bytes for entry in contributors(graph, plan))


@TOY
@given(data=st.data())
def test_refining_never_makes_its_starts_worse(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([4, 6, 8, 12]))
    refined = partition(graph, workers, method="refine")
    assert refined.lower_bound_bytes <= refined.cost_bytes
    for start in ("recursive", "equal-chop"):
        assert refined.cost_bytes <= partition(graph, workers, method=start).cost_bytes


@TOY
@given(data=st.data())
def test_the_best_plan_is_at_most_every_other_and_its_bound_is_its_cost(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=4))
    workers = data.draw(st.sampled_from([4, 6, 8]))
    best = partition(graph, workers, method="exact")
    assert best.lower_bound_bytes == best.cost_bytes
    for method in ("recursive", "refine", "all-row", "spartan", "equal-chop"):
        other = partition(graph, workers, method=method)
        assert best.cost_bytes <= other.cost_bytes
        assert other.lower_bound_bytes <= best.cost_bytes


def test_methods_keep_to_what_they_are(graph):
    def plans(method):
        return partition(graph, 4, method=method)

    for operation in graph.operations:
        kinds = {operation.bound.kind(v) for v in plans("icml18").strategies[operation.name] if v}
        assert "reduce" not in kinds
    for tensor in graph.tensors:
        first = [axis for axis, extent in enumerate(tensor.shape) if extent >= 2][:1] or [None]
        assert plans("all-row").layouts[tensor.name].dimensions[0] == first[0]
        chopped = plans("equal-chop").layouts[tensor.name].dimensions
        if max(tensor.shape) >= 4:
            assert len(set(chopped)) == 1
        if tensor.role == "parameter":
            assert plans("data-parallel").layouts[tensor.name].dimensions == (None, None)


def test_refining_finds_what_recursion_misses(toy, texts):
    """The best first step is not part of the best plan."""
    builder = toy()
    a, b, c = builder.tensor(16, 12), builder.tensor(12, 2), builder.tensor(2, 16)
    product = builder.apply(texts["MATMUL"], builder.apply(texts["MATMUL"], a, b), c)
    builder.apply(texts["RELU"], product)
    graph = builder.graph()
    costs = {m: partition(graph, 8, method=m).cost_bytes for m in ("recursive", "refine")}
    assert costs["refine"] < costs["recursive"]
