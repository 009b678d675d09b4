"""Reweighting changes no assignment's cost, leaves nothing negative, and gives a bound."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.solvers.elimination import CostTable
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core

from .problems import assignments, pairwise_tables


@settings(max_examples=100)
@given(pairwise_tables(variables=5), st.booleans(), st.integers(0, 3))
def test_every_cost_stays_and_nothing_is_negative(problem, backwards, sweeps):
    whole = core(*problem).problem
    messages = MessagePassing(whole)
    bounds = [messages.sweep() for _ in range(sweeps)]
    found = messages.reweighted(backwards)
    for assignment in assignments(whole.domains):
        turned = assignment[::-1] if backwards else assignment
        assert found.bound + found.cost(turned) == whole.cost(assignment)
        assert all(bound <= whole.cost(assignment) for bound in (*bounds, found.bound))
    for costs in (*found.unary, *found.tables.values()):
        assert costs.min(initial=0) >= 0
    for table in found.tables.values():
        assert (table.min(axis=1) == 0).all()


def test_the_bound_of_a_frustrated_loop_rises_but_stays_below_the_optimum():
    """Four variables that all want to differ from each other, with three values: one pair must agree."""
    same = 100 * np.eye(3, dtype=np.int64)
    cost_tables = [CostTable((a, b), same) for a in range(4) for b in range(a)]
    messages = MessagePassing(core([3] * 4, cost_tables).problem)
    bounds = [messages.sweep() for _ in range(20)]
    assert 0 <= bounds[-1] <= 100


@pytest.mark.parametrize("seed", range(5))
def test_sweeps_do_not_lower_the_bound_but_for_rounding(seed):
    random = np.random.default_rng(seed)
    cost_tables = [CostTable((a, b), random.integers(0, 10**9, (5, 5))) for a in range(8) for b in range(a)]
    messages = MessagePassing(core([5] * 8, cost_tables).problem)
    bounds = [messages.sweep() for _ in range(30)]
    assert all(later >= earlier - 1000 for earlier, later in pairwise(bounds))
    assert bounds[-1] > bounds[0] > 0
