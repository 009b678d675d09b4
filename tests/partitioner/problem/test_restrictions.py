"""The choices that restrictions leave, step by step and in the tables, against those of whole sequences."""

from __future__ import annotations

import itertools

import pytest

from tofu.partitioner.problem.candidates import every_dimension, every_variable
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph, joint_choices
from tofu.partitioner.problem.restrictions import FREE, Restriction, Restrictions
from tofu.partitioner.problem.sequences import all_sequences

FACTORS = (2, 2, 2)


@pytest.mark.parametrize("shape", [(1, 8), (2, 5), (9, 4), (17, 17)])
@pytest.mark.parametrize("forbidden", [(), (0,), (1,), (0, 1)])
def test_a_step_may_take_what_an_allowed_sequence_goes_on_with(shape, forbidden):
    possible = [s for s in itertools.product([None, 0, 1], repeat=3) if _fits(shape, s)]
    for pins in itertools.product([None, FREE, *({0, 1}.difference(forbidden))], repeat=3):
        restriction = Restriction(pins, frozenset(forbidden))
        restrictions = Restrictions(FACTORS, tensors={4: restriction})
        allowed = [s for s in possible if restriction.allows(s)]
        for step, earlier in {(step, s[:step]) for s in allowed for step in range(3)}:
            keep = restrictions.dimensions(4, shape, earlier, every_dimension)
            found = keep(tuple(d for d in (0, 1) if _fits(shape, (*earlier, d))))
            assert {*found} - {None} == {s[step] for s in allowed if s[:step] == earlier} - {None}


def _fits(shape, sequence):
    """Tell whether every part of a tensor has an element: an extent is halved by every split along it."""
    return all(extent >= 2 ** sequence.count(dimension) for dimension, extent in enumerate(shape))


def test_unrestricted_classes_keep_what_the_method_keeps():
    restrictions = Restrictions(FACTORS, tensors={1: Restriction((0, FREE, FREE))})
    assert restrictions.dimensions(0, (4,), (), every_dimension) is every_dimension
    assert restrictions.variables(1, (), every_variable) is every_variable
    assert restrictions
    assert not Restrictions()


@pytest.mark.parametrize("workers", [2, 4])
def test_forbidden_choices_cost_more_than_all_allowed_ones(toy, texts, workers):
    builder = toy()
    builder.apply(texts["MATMUL"], builder.tensor(4, 4), builder.tensor(4, 4))
    problem = build_problem(builder.graph())
    factors = problem.objective.factors(workers)
    choices = joint_choices(problem, factors, all_sequences)
    _, plain = factor_graph(problem, *choices)
    free = (FREE,) * len(factors)
    restrictions = Restrictions(
        factors, {0: Restriction((*free[1:], "i"))}, {1: Restriction(free, frozenset([0]))}
    )
    sequences = [[c.sequences for c in side] for side in choices]
    priced = restrictions.priced(plain, *sequences)
    costs = {True: [], False: []}
    for assignment in itertools.product(*(range(len(found)) for side in sequences for found in side)):
        at = [
            sum(int(t.table[tuple(assignment[v] for v in t.scope)]) for t in each) for each in (plain, priced)
        ]
        chosen = [found[n] for found, n in zip([*sequences[0], *sequences[1]], assignment, strict=True)]
        allowed = restrictions.broken(chosen[:1], chosen[1:]) == ([], [])
        assert allowed == (chosen[0][-1] == "i" and 0 not in chosen[2])
        assert not allowed or at[0] == at[1]
        costs[allowed].append(at[1])
    assert max(costs[True]) < min(costs[False])
