"""The bytes that are live at an instant are a bound on the memory of every plan."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Role
from tofu.partitioner import METHODS, least_peak_bytes, lower, partition, peak_bytes
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.live_bytes import GRADES, LiveBytes
from tofu.partitioner.problem.problem import Chosen
from tofu.programs.memory import plan_memory


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_plan_needs_less(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([1, 2, 3, 4, 6]))
    least = least_peak_bytes(graph, workers)
    method = data.draw(st.sampled_from(sorted(METHODS)))
    replicate = data.draw(st.booleans())
    assert least <= peak_bytes(graph, partition(graph, workers, method, replicate=replicate))


@pytest.mark.parametrize(("name", "options"), [("mlp", {}), ("lenet", {"batch": 8}), ("lstm", {"batch": 4})])
def test_no_plan_of_a_model_needs_less_and_some_need_little_more(name, options):
    graph = tofu.models.get(name, **options).training_graph("adam")
    for workers in (1, 4):
        least = least_peak_bytes(graph, workers)
        needed = peak_bytes(graph, partition(graph, workers, replicate=False))
        assert 0.8 * needed <= least <= needed


def test_what_is_read_in_part_may_be_gone(toy, texts):
    builder = toy()
    value = builder.apply(texts["RELU"], builder.tensor(9, 4, role=Role.DATA))
    builder.apply(texts["EVERY_SECOND"], value)
    live = LiveBytes.of(build_problem(builder.graph()))
    assert (live.lasting_bytes, live.passing, live.across) == (9 * 4 * 4, (), [0, 0])


def test_prices_are_of_all_tensors_that_share_a_choice_and_graded_by_shape(toy, texts):
    builder = toy()
    weights = [builder.tensor(4, 4) for _ in range(GRADES + 1)]
    value = builder.tensor(8, 4, role=Role.DATA)
    for weight in weights:
        value = builder.apply(texts["MATMUL"], value, weight)
    problem = build_problem(builder.graph())
    live = LiveBytes.of(problem)
    even, graded = live.prices(Fraction(3, 2)), live.graded_prices(Fraction(3, 2))
    assert {even[problem.tensor_class[weight]] for weight in weights} == {Fraction(6)}
    found = [graded[problem.tensor_class[weight]] for weight in weights]
    assert len(set(found[:GRADES])) == GRADES
    assert found[GRADES] == found[0] == 6
    assert max(found) < 12
    assert graded.keys() > even.keys()


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_counts_is_live_while_an_operation_computes(data, draw_graph):
    """No total exceeds the bytes that buffers of the lowered plan take during the operation."""
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([1, 2, 3, 4, 6]))
    method = data.draw(st.sampled_from(sorted(METHODS)))
    plan = partition(graph, workers, method, replicate=data.draw(st.booleans()))
    problem = build_problem(graph, space=plan.space)
    operations = dict(zip(problem.operation_class, graph.operations, strict=True))
    tensors = dict(zip(problem.tensor_class, graph.tensors, strict=True))
    chosen = (
        [plan.strategies[operations[number].name] for number in range(len(operations))],
        [plan.layouts[tensors[number].name].form for number in range(len(tensors))],
        plan.factors,
    )
    totals = LiveBytes.of(problem).totals(*chosen)
    assert LiveBytes.of(problem).fullest_of(*chosen) == (totals.index(max(totals)), max(totals))
    memory = plan_memory(lower(graph, plan))
    ends = [*memory.begins[1:], len(memory.live_bytes[0])]
    for total, begin, end in zip(totals, memory.begins, ends, strict=True):
        assert total <= sum(int(live[begin:end].max()) for live in memory.live_bytes)


def test_prices_cost_what_totals_count():
    """A plan costs more by what it holds beyond the part without a choice, at the price of one operation."""
    graph = tofu.models.get("mlp", batch=16).training_graph()
    problem = build_problem(graph, space=Space(replicate=True))
    live = LiveBytes.of(problem)
    for operation in range(0, len(graph.operations), 3):
        price = {operation: Fraction(1)}
        priced = replace(problem, prices=live.prices(Fraction(1)), buffer_prices=live.buffer_prices(price, 4))
        found = recursive(priced, 4)
        moved = Chosen(problem, found.factors, found.strategies, found.dimensions).moved_bytes[-1]
        total = live.totals(found.strategies, found.dimensions, found.factors)[operation]
        assert found.cost.value == moved + total - live.unpriced(price)
