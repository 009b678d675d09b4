"""Plans of the whole space, with copies and terms, against enumeration element by element."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.dataflow.graph import Role
from tofu.partitioner import partition
from tofu.partitioner.layouts.forms import Partial

from .whole_space import TERMS, cheapest, repeated


def check(graph, workers, activations=False):
    best = cheapest(graph, workers, activations)
    settings = {"feed": "anywhere", "copy_activations": activations}
    found = partition(graph, workers, method="exact", **settings)
    found.verify(graph)
    assert found.cost_bytes == found.lower_bound_bytes
    assert found.cost_bytes + price(graph, found) == best
    for method in ("recursive", "refine"):
        other = partition(graph, workers, method=method, **settings)
        assert other.lower_bound_bytes <= max(best - price(graph, other), 0)
        assert best <= other.cost_bytes + price(graph, other)
    return found


def price(graph, plan):
    """The price of what a plan computes more than once."""
    strategies = {
        name: [TERMS if isinstance(entry, Partial) else entry for entry in form]
        for name, form in plan.strategies.items()
    }
    return sum(repeated(op.bound, strategies[op.name], plan.factors) for op in graph.operations)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_of_two_or_three_workers_is_that_of_enumeration(data, draw_graph):
    check(data.draw(draw_graph(max_operations=4)), data.draw(st.sampled_from([2, 3])))


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_of_four_workers_is_that_of_enumeration(data, draw_graph):
    check(data.draw(draw_graph(max_operations=2)), 4)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_of_sums_of_products_is_that_of_enumeration(data, toy, texts):
    builder = toy()
    rows, columns = data.draw(st.tuples(*[st.sampled_from([1, 2, 3])] * 2))
    inner = data.draw(st.lists(st.sampled_from([2, 4, 5, 8]), min_size=2, max_size=2))
    products = [
        builder.apply(texts["MATMUL"], builder.tensor(rows, k), builder.tensor(k, columns)) for k in inner
    ]
    total = builder.apply(texts["ADD"], *products)
    builder.apply(texts[data.draw(st.sampled_from(["RELU", "TRANSPOSE", "COLUMN_SUM"]))], total)
    found = check(builder.graph(), data.draw(st.sampled_from([2, 3])))
    narrow = partition(found.graph, found.workers, method="exact", feed="anywhere", keep=False)
    assert found.cost_bytes + price(found.graph, found) <= narrow.cost_bytes + price(found.graph, narrow)


def update(builder, texts, tensor):
    """Overwrite a tensor."""
    change = builder.tensor(*builder.tensors[tensor].shape)
    rate = builder.tensor(1, role=Role.SCALAR)
    builder.apply(texts["UPDATE"], tensor, change, rate, aliases=(tensor,))


def read_by_some(data, builder, texts, shared):
    """Read a tensor by three or four operations."""
    rows, columns = builder.tensors[shared].shape
    readers = st.sampled_from(["LEFT", "RIGHT", "RELU", "TRANSPOSE", "COLUMN_SUM"])
    for kind in data.draw(st.lists(readers, min_size=3, max_size=4)):
        other = data.draw(st.sampled_from([1, 4, 16]))
        if kind == "LEFT":
            builder.apply(texts["MATMUL"], shared, builder.tensor(columns, other))
        elif kind == "RIGHT":
            builder.apply(texts["MATMUL"], builder.tensor(other, rows), shared)
        else:
            builder.apply(texts[kind], shared)


SIZES = st.tuples(*[st.sampled_from([2, 3, 4, 6])] * 2)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_with_tensors_that_many_read_is_that_of_enumeration(data, toy, texts):
    builder = toy()
    shared = builder.tensor(*data.draw(SIZES))
    read_by_some(data, builder, texts, shared)
    if data.draw(st.booleans()):
        update(builder, texts, shared)
    check(builder.graph(), data.draw(st.sampled_from([2, 3])))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_with_copies_of_activations_is_that_of_enumeration(data, toy, texts):
    builder = toy()
    shared = builder.apply(texts["RELU"], builder.tensor(*data.draw(SIZES)))
    read_by_some(data, builder, texts, shared)
    check(builder.graph(), data.draw(st.sampled_from([2, 3])), activations=True)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_activation_may_have_a_copy(data, draw_graph):
    check(data.draw(draw_graph(max_operations=4)), data.draw(st.sampled_from([2, 3])), activations=True)


@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_an_activation_that_is_read_in_two_layouts_is_copied_once(toy, texts, method):
    builder = toy()
    shared = builder.apply(texts["RELU"], builder.tensor(64, 64))
    for _ in range(4):
        builder.apply(texts["RELU"], shared)
    graph = builder.graph()
    names = [operation.name for operation in graph.operations]
    pins = [f"pin {name}={variable}" for name, variable in zip(names, "iiijj", strict=True)]
    pinned = {"method": method, "feed": "anywhere", "constraints": pins}
    plan = partition(graph, 2, copy_activations=True, **pinned)
    plan.verify(graph)
    ((copy,),) = plan.copies.values()
    assert copy.readers == (names[3], names[4])
    assert plan.cost_bytes == 64 * 64 // 2 * 4
    assert partition(graph, 2, **pinned).cost_bytes == 2 * plan.cost_bytes


@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_a_tensor_that_is_read_in_two_layouts_is_copied_once(toy, texts, method):
    builder = toy()
    shared = builder.tensor(64, 64)
    for _ in range(4):
        builder.apply(texts["RELU"], shared)
    update(builder, texts, shared)
    graph = builder.graph()
    names = [operation.name for operation in graph.operations]
    pins = [f"pin {name}={variable}" for name, variable in zip(names, "iijji", strict=True)]
    plan = partition(graph, 2, method=method, feed="anywhere", constraints=pins)
    plan.verify(graph)
    ((copy,),) = plan.copies.values()
    assert copy.readers == (names[2], names[3])
    assert plan.cost_bytes == 64 * 64 // 2 * 4
    apart = partition(graph, 2, method=method, feed="anywhere", constraints=pins, keep=False)
    assert apart.cost_bytes == 2 * plan.cost_bytes


@pytest.mark.parametrize("workers", [2, 4])
def test_products_are_summed_before_they_are_reduced(toy, texts, workers):
    builder = toy()
    products = [
        builder.apply(texts["MATMUL"], builder.tensor(1, 64), builder.tensor(64, 1)) for _ in range(6)
    ]
    total = products[0]
    for product in products[1:]:
        total = builder.apply(texts["ADD"], total, product)
    graph = builder.graph()
    plan = partition(graph, workers, method="exact", feed="anywhere")
    once = workers * (workers - 1) * 4
    assert plan.cost_bytes == plan.lower_bound_bytes <= once
    kept = partition(graph, workers, method="exact", feed="anywhere", keep=False)
    assert kept.cost_bytes == 6 * once
