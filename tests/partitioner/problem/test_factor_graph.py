"""The sum of the tables at an assignment is what the assigned plan moves, and forbidden choices cost more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tofu
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.layouts.step_split import Layout
from tofu.partitioner.problem.candidates import Tables
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import (
    factor_graph,
    joint_choices,
    next_choices,
    nothing_split,
    steps_of,
)
from tofu.partitioner.problem.sequences import all_sequences
from tofu.partitioner.problem.solution import assigned


def at(cost_tables, assignment):
    return sum(int(each.table[tuple(assignment[v] for v in each.scope)]) for each in cost_tables)


def moved(problem, solution):
    """The bytes of a solution, counted from the graph."""
    layouts = {
        tensor.name: Layout(
            tensor.shape, solution.dimensions[problem.tensor_class[tensor.index]], solution.factors
        )
        for tensor in problem.graph.tensors
    }
    strategies = {
        operation.name: solution.strategies[problem.operation_class[operation.index]]
        for operation in problem.graph.operations
    }
    return count_bytes(problem.graph, layouts, strategies, solution.factors)[-1]


@pytest.mark.parametrize("seed", range(5))
def test_all_steps_at_once(graph, seed):
    problem = build_problem(graph)
    factors = steps_of(problem, 4)
    operators, tensors = joint_choices(problem, factors, all_sequences)
    domains, cost_tables = factor_graph(problem, operators, tensors)
    assert domains == [len(choices.sequences) for choices in (*operators, *tensors)]
    random = np.random.default_rng(seed)
    assignment = [int(random.integers(domain)) for domain in domains]
    cost = at(cost_tables, assignment)
    assert cost == moved(problem, assigned(factors, operators, tensors, assignment, cost=problem.cost(cost)))


def test_the_same_problem_at_other_prices_shares_its_choices(graph):
    problem = build_problem(graph)
    factors = steps_of(problem, 3)
    priced = replace(problem, prices={0: Fraction(1)})
    own, others = (
        next_choices(each, each.choices(factors), nothing_split(each, factors)) for each in (problem, priced)
    )
    assert all(
        mine is other for mine, other in zip((*own[0], *own[1]), (*others[0], *others[1]), strict=True)
    )


def test_the_first_step_of_one_is_the_whole(graph):
    problem = build_problem(graph)
    factors = steps_of(problem, 3)
    step = next_choices(problem, Tables(factors), nothing_split(problem, factors))
    whole = joint_choices(problem, factors, all_sequences)
    for mine, others in zip((*step[0], *step[1]), (*whole[0], *whole[1]), strict=True):
        assert set(mine.sequences) <= set(others.sequences)


def test_links_of_one_kind_share_their_table():
    """Layers repeat, so there are far fewer kinds than links, and each table is its link's own."""
    problem = build_problem(tofu.models.get("resnet-18", batch=8).training_graph())
    factors = steps_of(problem, 2)
    operators, tensors = next_choices(problem, Tables(factors), nothing_split(problem, factors))
    _, cost_tables = factor_graph(problem, operators, tensors)
    kinds = problem.links.kinds(operators, tensors)
    assert len(kinds.first) < len(problem.links) / 2
    for link, kind, found in zip(problem.links, kinds.of, cost_tables, strict=True):
        own = problem.objective.table(operators[link.operator], tensors[link.tensor], link.use, link.weight)
        assert found.scope == (link.operator, len(operators) + link.tensor)
        assert found.table is own is cost_tables[kinds.first[kind]].table
