"""Relaxed choices stand for all sequences, and no plan costs less than the relaxed problem."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.exact import exact
from tofu.partitioner.plans.space import SPLIT, Space
from tofu.partitioner.problem.any_order import ascending, ascending_of, orders, relaxed
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import factor_graph
from tofu.partitioner.problem.live_bytes import LiveBytes
from tofu.partitioner.problem.restrictions import FREE, Restriction, Restrictions
from tofu.partitioner.problem.sequences import all_sequences
from tofu.partitioner.solvers.elimination import eliminate

from ..methods.training_graphs import seeds, training_graph


@given(
    st.dictionaries(st.sampled_from("ijk"), st.integers(1, 12), min_size=1),
    st.sampled_from([(2, 2), (2, 2, 2), (3, 2, 2), (3, 3, 2, 2)]),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
def test_every_sequence_is_an_order_of_one_choice(extents, factors, ordered, replicate, terms):
    choices = ascending(extents, factors, ordered, replicate, terms)
    everything = [s for choice in choices for s in orders(choice, factors, ordered)]
    assert len(set(choices)) == len(choices)
    assert len(set(everything)) == len(everything)
    sequences = all_sequences(extents, factors, replicate, terms)
    assert set(sequences) <= set(everything)
    assert set(choices) <= set(sequences)
    for sequence in sequences:
        assert ascending_of(sequence, list(extents), factors, ordered) in choices


@pytest.fixture(params=[SPLIT, Space(True), Space(True, keep=True), Space(True, "batch", True)], ids=str)
def space(request):
    return request.param


@seeds
@pytest.mark.parametrize("ordered", [0, 1, 2])
def test_no_plan_costs_less_than_the_relaxed_problem(toy, texts, seed, space, ordered):
    problem = build_problem(training_graph(toy, texts, seed), space=space)
    best = exact(problem, 8)
    assert best.cost == best.lower_bound
    bound = eliminate(*factor_graph(*relaxed(problem, best.factors, ordered))).optimum
    assert bound <= best.cost.value
    pinned = Restriction((*best.strategies[0][:1], FREE, FREE))
    restricted = replace(problem, restrictions=Restrictions(best.factors, {0: pinned}))
    assert eliminate(*factor_graph(*relaxed(restricted, best.factors, ordered))).optimum <= best.cost.value


@seeds
@pytest.mark.parametrize("ordered", [0, 1, 2])
def test_memory_that_has_a_price_costs_no_less(toy, texts, seed, space, ordered):
    problem = build_problem(training_graph(toy, texts, seed), space=space)
    live = LiveBytes.of(problem)
    some = {operation.index: Fraction(1, 3) for operation in problem.graph.operations[::2]}
    priced = replace(problem, prices=live.prices(Fraction(1, 2)), buffer_prices=live.buffer_prices(some, 8))
    best = exact(priced, 8)
    assert best.cost == best.lower_bound
    assert eliminate(*factor_graph(*relaxed(priced, best.factors, ordered))).optimum <= best.cost.value
