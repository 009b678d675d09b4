"""Random training graphs, and the optimum of their joint problem by enumeration and by another solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tofu.dataflow.graph import Phase, Role
from tofu.partitioner.layouts.choices import operator_choices, splittable, tensor_choices
from tofu.partitioner.problem.factor_graph import factor_graph
from tofu.partitioner.problem.moved_bytes import MovedBytes
from tofu.partitioner.problem.sequences import all_sequences

FEW = range(12)


ALL = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200)]


seeds = pytest.mark.parametrize("seed", [*FEW, *ALL])


spaces = pytest.mark.parametrize("replicate", [False, True], ids=["split", "replicated"])
"""Whether tensors may be replicated over any steps."""


ENUMERATION_LIMIT = 1 << 26
"""The largest number of combinations of choices that are enumerated for a graph."""


GRADIENT = "def gradient(a, b):\n    return lambda i, j: Sum(lambda k: a[k, i] * b[k, j])"


def training_graph(toy, texts, seed):
    """One or two layers `activation(data * weight)`, the gradient of each weight, and its update."""
    random = np.random.default_rng(seed)
    builder = toy()
    batch, width = (int(n) for n in random.choice([1, 2, 3, 4, 5, 6, 8], 2))
    data = builder.tensor(batch, width, role=Role.DATA)
    layers = []
    for _ in range(1 + seed % 2):
        out = int(random.choice([2, 3, 4, 6]))
        weight = builder.tensor(builder.tensors[data].shape[1], out)
        product = builder.apply(texts["MATMUL"], data, weight)
        layers.append((data, weight))
        data = builder.apply(texts["RELU"], product) if random.random() < 0.5 else product
    gradient = data
    rate = builder.tensor(1, role=Role.SCALAR)
    for index, (value, weight) in enumerate(reversed(layers)):
        of_weight = builder.apply(texts["MATMUL"], builder.apply(texts["TRANSPOSE"], value), gradient)
        if index + 1 < len(layers):
            gradient = builder.apply(texts["MATMUL"], gradient, builder.apply(texts["TRANSPOSE"], weight))
        builder.apply(texts["UPDATE"], weight, of_weight, rate, aliases=(weight,))
    return builder.graph()


def one_layer(toy, texts, random, count):
    """Return one layer with the gradient of its weight, and its update; or a gradient and an update."""
    builder = toy()

    def apply(text, *inputs, phase=Phase.FORWARD, aliases=None):
        made = builder.apply(text, *inputs, aliases=aliases)
        builder.operations[-1] = replace(builder.operations[-1], phase=phase)
        return made

    batch, rows, columns = (int(n) for n in random.choice([1, 2, 3, 8, 64, 1024], 3))
    data = builder.tensor(batch, rows, role=Role.DATA)
    weight = builder.tensor(rows, columns)
    rate = builder.tensor(1, role=Role.SCALAR)
    if count == 2:
        value = builder.tensor(batch, columns, role=Role.DATA)
    else:
        value = apply(texts["MATMUL"], data, weight)
    if count == 4 and random.random() < 0.5:
        value = apply(texts["RELU"], value)
    elif count == 4:
        apply(texts["COLUMN_SUM"], value)
    gradient = apply(GRADIENT, data, value, phase=Phase.BACKWARD)
    apply(texts["UPDATE"], weight, gradient, rate, phase=Phase.UPDATE, aliases=(weight,))
    return builder.graph()


def joint_problem(problem, factors):
    """Domains and factors over all sequences of all steps."""
    operators = [
        operator_choices(b, all_sequences(splittable(b), factors), factors) for b in problem.operators
    ]
    tensors = [
        tensor_choices(s, all_sequences(dict(enumerate(s)), factors, problem.replicate), factors)
        for s in problem.shapes
    ]
    return factor_graph(problem, operators, tensors)


def enumerated(problem, domains, cost_tables):
    """The least sum over all choices of all operators, or of all tensors, and the best of the others."""
    count = len(problem.operators)
    sides = [(range(count), 0), (range(count, len(domains)), 1)]
    listed, axis = min(sides, key=lambda side: np.prod([domains[v] for v in side[0]], dtype=float))
    extents = [domains[v] for v in listed]
    assert np.prod(extents, dtype=float) <= ENUMERATION_LIMIT
    total = np.zeros(extents, np.int64)
    for other in range(len(domains)):
        if other in listed:
            continue
        own = np.zeros([domains[other]] + [1] * len(extents), np.int64)
        for scope, table in cost_tables:
            if scope[1 - axis] == other:
                shape = [domains[other]] + [1] * len(extents)
                shape[1 + listed.index(scope[axis])] = domains[scope[axis]]
                own = own + np.moveaxis(table, 1 - axis, 0).reshape(shape)
        total += own.min(axis=0)
    return int(total.min())


def by_toulbar2(domains, cost_tables):
    """The optimum by an independent solver of cost function problems."""
    pytoulbar2 = pytest.importorskip("pytoulbar2", reason="the extra `solver` is not installed")
    ceiling = sum(int(f.table.max()) for f in cost_tables) + 1
    problem = pytoulbar2.CFN(ceiling)
    names = [problem.AddVariable(f"v{v}", range(domain)) for v, domain in enumerate(domains)]
    for cost_table in cost_tables:
        problem.AddFunction([names[v] for v in cost_table.scope], [int(c) for c in cost_table.table.flat])
    found = problem.Solve()
    assert found is not None
    return int(found[1])


def recursive_cost(problem, plan, steps):
    """Return the bytes that the first steps of a plan move, from its choices."""
    used = plan.factors[:steps]
    objective = MovedBytes()
    return sum(
        int(
            objective.table(
                operator_choices(
                    problem.operators[link.operator], [plan.strategies[link.operator][:steps]], used
                ),
                tensor_choices(problem.shapes[link.tensor], [plan.dimensions[link.tensor][:steps]], used),
                link.use,
                link.weight,
            ).item()
        )
        for link in problem.links
    )
