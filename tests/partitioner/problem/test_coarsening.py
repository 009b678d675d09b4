"""The groups of the paper's coarsening (Tofu, section 5.1), contracted before the search: the same optimum.

Contracting a group means to minimise over its members for every choice of what it touches. That is what
elimination does with each variable, in the order that it chooses. Here it is done to whole groups first, by
other code, and the rest is searched.
"""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Role
from tofu.partitioner.problem.candidates import Tables
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph, next_choices, nothing_split
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.pairwise import core

FACTORS = (2, 2)


def layered(toy, texts, seed):
    """Forward, backward and updates of layers with runs of element-wise operators and a shared weight."""
    random = np.random.default_rng(seed)
    builder = toy()
    rate = builder.tensor(1, role=Role.SCALAR)
    width = int(random.choice([4, 5, 6]))
    value = builder.tensor(int(random.choice([3, 4, 8])), width, role=Role.DATA)
    shared = builder.tensor(width, width)
    inputs = []
    for _ in range(int(random.integers(2, 4))):
        inputs.append(value)
        made = builder.apply(texts["MATMUL"], value, shared)
        for _ in range(int(random.integers(0, 4))):
            made = builder.apply(texts["RELU"], made)
        value = builder.apply(texts["ADD"], made, value) if random.random() < 0.5 else made
    gradient, total = value, None
    for data in reversed(inputs):
        of_weight = builder.apply(texts["MATMUL"], builder.apply(texts["TRANSPOSE"], data), gradient)
        total = of_weight if total is None else builder.apply(texts["ADD"], total, of_weight)
        back = builder.apply(texts["MATMUL"], gradient, builder.apply(texts["TRANSPOSE"], shared))
        gradient = builder.apply(texts["MULTIPLY"], back, builder.apply(texts["RELU"], data))
    builder.apply(texts["UPDATE"], shared, total, rate, aliases=(shared,))
    return builder.graph()


def first_step(graph):
    problem = build_problem(graph)
    tables = Tables(FACTORS)
    choices = next_choices(problem, tables, nothing_split(problem, FACTORS))
    return problem, *factor_graph(problem, *choices)


def groups(graph, problem):
    """Variables of element-wise operators, and of the tensors that lie between them alone."""
    operators = {n for n, bound in enumerate(problem.operators) if bound.elementwise}
    around = [set() for _ in problem.shapes]
    for link in problem.links:
        around[link.tensor].add(link.operator)
    between = {tensor for tensor, users in enumerate(around) if users and users <= operators}
    return sorted(operators | {len(problem.operators) + tensor for tensor in between})


def contracted(domains, cost_tables, members):
    """The cost tables with the members minimised over, the one that joins the fewest others first."""
    left, pending = list(cost_tables), set(members)
    while pending:
        scopes = {v: set().union(*(f.scope for f in left if v in f.scope)) for v in pending}
        member = min(sorted(pending), key=lambda v: len(scopes[v]))
        pending.discard(member)
        touching = [cost_table for cost_table in left if member in cost_table.scope]
        if not touching:
            continue
        scope = tuple(sorted(scopes[member]))
        total = np.zeros([domains[v] for v in scope], np.int64)
        for cost_table in touching:
            order = sorted(range(len(cost_table.scope)), key=lambda axis: cost_table.scope[axis])
            shape = [domains[v] if v in cost_table.scope else 1 for v in scope]
            total += cost_table.table.transpose(order).reshape(shape)
        axis = scope.index(member)
        left = [cost_table for cost_table in left if member not in cost_table.scope]
        left.append(CostTable(scope[:axis] + scope[axis + 1 :], total.min(axis=axis)))
    return left


def check(graph):
    problem, domains, cost_tables = first_step(graph)
    members = groups(graph, problem)
    rest = contracted(domains, cost_tables, members)
    assert members
    assert {v for cost_table in rest for v in cost_table.scope}.isdisjoint(members)
    whole = eliminate(domains, cost_tables)
    assert eliminate(domains, rest).optimum == whole.optimum
    small = core(domains, cost_tables)
    found = (
        small.problem.constant
        + eliminate(
            small.problem.domains,
            [CostTable(scope, table) for scope, table in small.problem.tables.items()]
            + [CostTable((v,), costs) for v, costs in enumerate(small.problem.unary)],
        ).optimum
    )
    assert found == whole.optimum


@pytest.mark.parametrize("seed", range(40))
def test_contracting_the_groups_first_keeps_the_optimum(toy, texts, seed):
    check(layered(toy, texts, seed))


@pytest.mark.parametrize(("name", "options"), [("mlp", {}), ("lenet", {"batch": 8}), ("lstm", {"batch": 4})])
def test_also_of_whole_models(name, options):
    check(tofu.models.get(name, **options).training_graph())


def test_ties_of_time_steps_alone_may_cost(toy, texts):
    """They are meant to: all copies of a cell share one choice, however differently they would choose."""
    builders = []
    for tie in (None, "product"):
        builder = toy()
        weight = builder.tensor(4, 4)
        first = builder.apply(texts["MATMUL"], builder.tensor(8, 4, role=Role.DATA), weight, tie=tie)
        second = builder.apply(texts["MATMUL"], first, weight, tie=tie)
        builder.apply(texts["ADD"], builder.apply(texts["RELU"], first), second)
        builders.append(builder.graph())
    free, tied = (eliminate(*first_step(graph)[1:]).optimum for graph in builders)
    assert free <= tied
