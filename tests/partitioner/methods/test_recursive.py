"""The recursive search against enumeration of all choices of a step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.partitioner import partition
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.candidates import Tables
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph, next_choices, nothing_split

from .elements import best_next_step, plan_bytes
from .training_graphs import enumerated, recursive_cost, seeds, spaces, training_graph


@spaces
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_step_is_optimal(data, draw_graph, replicate):
    graph = data.draw(draw_graph(max_operations=2))
    plan = partition(graph, data.draw(st.sampled_from([2, 3, 4, 6])), replicate=replicate, keep=False)
    before = 0
    for step, cost in enumerate(plan.step_cost_bytes):
        assert before + cost == best_next_step(graph, plan, step)
        before += cost


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_costs_are_what_elements_move(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=4))
    plan = partition(graph, data.draw(st.integers(1, 8)))
    assert plan.cost_bytes == plan_bytes(graph, plan)
    assert sum(plan.step_cost_bytes) == plan.cost_bytes
    assert plan.lower_bound_bytes <= plan.cost_bytes


@pytest.mark.parametrize("workers", range(1, 9))
def test_costs_of_known_graphs(graph, workers):
    plan = partition(graph, workers, keep=False)
    assert plan.cost_bytes == plan_bytes(graph, plan)
    for step in range(len(plan.factors) + 1):
        assert sum(plan.step_cost_bytes[:step]) == plan_bytes(graph, plan, step)
    plan.verify(graph)


def test_the_bound_is_attained_where_one_step_is_all(graph):
    for workers in (2, 5, 7):
        plan = partition(graph, workers, keep=False)
        assert plan.lower_bound_bytes == plan.cost_bytes


def test_seven_workers_split_unevenly(toy, texts):
    graph = toy()
    graph.apply(texts["RELU"], graph.tensor(17, 2))
    plan = partition(graph.graph(), 7)
    assert plan.layouts["t0"].dimensions == (0,)
    assert [upper - lower for lower, upper in plan.layouts["t0"].regions[:, 0].tolist()] == [
        2,
        2,
        3,
        2,
        3,
        2,
        3,
    ]
    assert plan.cost_bytes == 0


def test_tensors_too_small_to_split_are_replicated(toy, texts):
    graph = toy()
    graph.apply(texts["ADD"], graph.tensor(1, 3), graph.tensor(1, 3))
    plan = partition(graph.graph(), 4)
    assert plan.layouts["t0"].dimensions == (1, None)
    assert plan.strategies["add0"] == ("j", None)
    assert plan.cost_bytes == 0


@spaces
@seeds
def test_every_step_is_the_best_of_all_its_choices(toy, texts, seed, replicate):
    problem = build_problem(training_graph(toy, texts, seed), space=Space(replicate))
    plan = recursive(problem, 4)
    tables = Tables(plan.factors)
    known = nothing_split(problem, plan.factors)
    for step in range(len(plan.factors)):
        domains, cost_tables = factor_graph(problem, *next_choices(problem, tables, known))
        assert recursive_cost(problem, plan, step + 1) == enumerated(problem, domains, cost_tables)
        known = type(known)(
            plan.factors,
            tuple(s[: step + 1] for s in plan.strategies),
            tuple(d[: step + 1] for d in plan.dimensions),
            problem.cost(0),
            problem.cost(0),
        )
