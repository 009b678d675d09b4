"""What restrictions leave, step by step and in the tables, against the restriction of whole sequences."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.problem.candidates import every_dimension, every_variable
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph, joint_choices
from tofu.partitioner.problem.restrictions import FREE, Restriction, Restrictions
from tofu.partitioner.problem.sequences import all_sequences, is_possible

FACTORS = (2, 2, 2)
LABELS = st.sampled_from([None, 0, 1])


@given(
    st.lists(LABELS | st.just(FREE), min_size=3, max_size=3).map(tuple),
    st.frozensets(st.integers(0, 1)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_a_step_may_take_what_an_allowed_sequence_goes_on_with(pins, forbidden, shape):
    restriction = Restriction(pins, forbidden)
    extents = dict(enumerate(shape))
    allowed = [s for s in all_sequences(extents, FACTORS) if restriction.allows(s)]
    if forbidden & set(pins) or not is_possible(extents, FACTORS, [None if p == FREE else p for p in pins]):
        return
    restrictions = Restrictions(FACTORS, tensors={4: restriction})
    for step in range(3):
        for earlier in {sequence[:step] for sequence in allowed}:
            keep = restrictions.dimensions(4, shape, earlier, every_dimension)
            splits = {s[step] for s in allowed if s[:step] == earlier} - {None}
            found = set(keep(tuple(d for d in (0, 1) if _fits(shape, earlier, d)))) - {None}
            assert splits == found


def _fits(shape, earlier, dimension):
    left = shape[dimension]
    for label in earlier:
        left //= 2 if label == dimension else 1
    return left >= 2


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
