"""The promises of every objective; a new one is a case of `OBJECTIVES`.

Tables add up to the score of a whole plan, which other code counts; the bound is below the least of all
plans of the recursion; and the steps multiply to the workers.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tofu.machines.machine import uniform
from tofu.partitioner import partition
from tofu.partitioner.layouts.choices import operator_choices, tensor_choices
from tofu.partitioner.methods.exact import exact
from tofu.partitioner.methods.recursive import recursion_bound, recursive
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.moved_bytes import MovedBytes
from tofu.partitioner.problem.problem import Chosen
from tofu.partitioner.problem.step_time import StepTime
from tofu.partitioner.problem.transfer_time import TransferTime

WORKERS = 4
BOX = uniform("box", [("socket", 2, 19.2e9), ("gpu", 2, 15.75e9)])


def odd_times(operation, workers, boxes):
    """Nanoseconds that rise with the points and differ between workers."""
    return 10 + (workers + 1) * np.prod(boxes[..., 1] - boxes[..., 0], axis=-1, dtype=np.int64)


OBJECTIVES = {
    "bytes": MovedBytes,
    "time": lambda: TransferTime(BOX, WORKERS),
    "step-time": lambda: StepTime(BOX, WORKERS, odd_times),
}

objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def summed(problem, solution):
    """The tables at a solution's choices alone, link by link."""
    total = 0
    for link in problem.links:
        operator = operator_choices(
            problem.operators[link.operator], [solution.strategies[link.operator]], solution.factors
        )
        tensor = tensor_choices(
            problem.shapes[link.tensor], [solution.dimensions[link.tensor]], solution.factors
        )
        total += int(problem.objective.table(operator, tensor, link.use, link.weight).item())
    for number, bound in enumerate(problem.operators):
        operator = operator_choices(bound, [solution.strategies[number]], solution.factors)
        alone = problem.objective.alone(problem, number, operator)
        total += 0 if alone is None else int(alone.item()) * problem.members[number]
    return total


@objectives
def test_the_steps_multiply_to_the_workers(objective):
    assert prod(OBJECTIVES[objective]().factors(WORKERS)) == WORKERS


@objectives
def test_tables_add_up_to_the_score_of_a_plan(graph, objective):
    problem = build_problem(graph, OBJECTIVES[objective]())
    for method in (recursive, exact):
        found = method(problem, WORKERS)
        chosen = Chosen(problem, found.factors, found.strategies, found.dimensions)
        assert summed(problem, found) == problem.objective.total(chosen) == found.cost.value
        assert found.cost.unit == found.lower_bound.unit == problem.objective.unit


@objectives
def test_tables_have_a_cost_for_every_pair_of_choices(graph, objective):
    problem = build_problem(graph, OBJECTIVES[objective]())
    factors = problem.objective.factors(WORKERS)
    for link in problem.links:
        bound, shape = problem.operators[link.operator], problem.shapes[link.tensor]
        variables = [v for v, n in bound.extents.items() if bound.kind(v) and n >= WORKERS]
        operator = operator_choices(bound, [(v,) * len(factors) for v in (None, *variables)], factors)
        axes = [None, *(axis for axis, extent in enumerate(shape) if extent >= WORKERS)]
        tensor = tensor_choices(shape, [(axis,) * len(factors) for axis in axes], factors)
        table = problem.objective.table(operator, tensor, link.use, link.weight)
        assert table.shape == (1 + len(variables), len(axes))
        assert table.dtype == np.int64
        assert (table >= 0).all()


@objectives
def test_the_bound_is_below_the_best_plan(graph, objective):
    problem = build_problem(graph, OBJECTIVES[objective]())
    best = exact(problem, WORKERS)
    assert 0 <= recursion_bound(problem, best.factors) <= best.cost.value


def test_a_plan_states_bytes_whatever_was_minimised(graph):
    for options in ({}, {"objective": "time", "machine": BOX}):
        plan = partition(graph, WORKERS, **options)
        plan.verify(graph)
        assert plan.cost_bytes == sum(plan.step_cost_bytes)
        assert plan.lower_bound_bytes <= plan.cost_bytes
        assert (plan.transfer_time is None) == (not options)


def test_problems_of_different_objectives_differ(graph):
    problem = build_problem(graph)
    assert replace(problem, objective=TransferTime(BOX, WORKERS)) != problem
