"""The exact search against enumeration of all plans, and against the solver of others."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.partitioner import partition
from tofu.partitioner.layouts.step_split import prime_factors
from tofu.partitioner.methods.exact import exact
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.candidates import Tables
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph, next_choices, nothing_split

from .elements import moved_bytes, operator_choices, tensor_choices
from .training_graphs import (
    by_toulbar2,
    enumerated,
    joint_problem,
    recursive_cost,
    seeds,
    spaces,
    training_graph,
)


@spaces
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_exact_is_the_best_of_all_plans_and_none_beats_the_lower_bound(data, draw_graph, replicate):
    graph = data.draw(draw_graph(max_operations=1))
    factors = prime_factors(4)
    plan = partition(graph, 4, replicate=replicate, keep=False)
    exact = partition(graph, 4, method="exact", replicate=replicate, keep=False)
    (operation,) = graph.operations
    classes = {t.index: t.index if t.alias is None else t.alias for t in graph.tensors}

    def sequences(choices, subject, *how):
        return [
            two for one in choices(subject, (), factors, *how) for two in choices(subject, one, factors, *how)
        ]

    touched = sorted({classes[t] for t in (*operation.inputs, *operation.outputs)})
    layouts = [sequences(tensor_choices, graph.tensors[t].shape, replicate) for t in touched]
    best = None
    for strategy in sequences(operator_choices, operation.bound):
        for choice in itertools.product(*layouts):
            chosen = dict(zip(touched, choice, strict=True))
            of_tensor = {t: chosen.get(c) for t, c in classes.items()}
            moved = sum(moved_bytes(graph, operation, strategy, of_tensor, factors).values())
            assert plan.lower_bound_bytes <= moved
            best = moved if best is None else min(best, moved)
    assert exact.lower_bound_bytes == exact.cost_bytes == best


@spaces
@seeds
def test_exact_is_the_best_of_all_plans(toy, texts, seed, replicate):
    problem = build_problem(training_graph(toy, texts, seed), space=Space(replicate))
    workers = 2 if replicate and seed % 2 else 4  # of two layers, one step's choices can be enumerated
    plan = exact(problem, workers)
    assert plan.lower_bound == plan.cost
    assert plan.cost.value == enumerated(problem, *joint_problem(problem, plan.factors))


@spaces
@seeds
def test_a_solver_of_others_finds_the_same_optimum(toy, texts, seed, replicate):
    problem = build_problem(training_graph(toy, texts, seed), space=Space(replicate))
    plan = exact(problem, 4)
    assert by_toulbar2(*joint_problem(problem, plan.factors)) == plan.cost.value
    first = Tables(plan.factors)
    step = factor_graph(problem, *next_choices(problem, first, nothing_split(problem, plan.factors)))
    assert by_toulbar2(*step) == recursive_cost(problem, recursive(problem, 4), 1)


@spaces
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_best_plan_is_at_most_every_other_and_its_bound_is_its_cost(data, draw_graph, replicate):
    graph = data.draw(draw_graph(max_operations=4))
    workers = data.draw(st.sampled_from([4, 6, 8]))
    best = partition(graph, workers, method="exact", replicate=replicate, keep=False)
    assert best.lower_bound_bytes == best.cost_bytes
    for method in ("recursive", "refine", "all-row", "spartan", "equal-chop"):
        other = partition(graph, workers, method=method, replicate=replicate, keep=False)
        assert best.cost_bytes <= other.cost_bytes
        assert other.lower_bound_bytes <= best.cost_bytes
