"""Of few values of each variable the best assignment is found; marginals say which values to keep."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from tofu.partitioner.solvers import few_values
from tofu.partitioner.solvers.few_values import of_few_values
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core

from .problems import assignments, beads, ordered, pairwise_tables


@settings(max_examples=100)
@given(pairwise_tables())
def test_of_all_values_it_is_the_optimum(problem):
    whole = core(*problem).problem
    found = of_few_values(whole, MessagePassing(whole).marginals(), None)
    assert whole.cost(found) == min(map(whole.cost, assignments(whole.domains)))


def test_the_assignment_that_is_known_is_among_those_searched(monkeypatch):
    monkeypatch.setattr(few_values, "KEPT", (1, 2))
    whole = ordered(*beads(6, domain=6))
    messages = MessagePassing(whole)
    for _ in range(30):
        messages.sweep()
    best = of_few_values(whole, messages.marginals(), None)
    misleading = [np.arange(6.0)] * len(whole.domains)
    assert whole.cost(of_few_values(whole, misleading, None)) > whole.cost(best)
    assert whole.cost(of_few_values(whole, misleading, best)) <= whole.cost(best)


def test_if_two_values_are_too_wide_one_of_each_is_left(monkeypatch):
    monkeypatch.setattr(few_values, "TABLE_LIMIT", 4)
    whole = ordered(*beads(3))
    marginals = MessagePassing(whole).marginals()
    found = of_few_values(whole, marginals, None)
    assert list(found) == [int(costs.argmin()) for costs in marginals]
    assert of_few_values(whole, marginals, (3,) * len(found)) == (3,) * len(found)
