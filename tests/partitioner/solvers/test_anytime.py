"""Closing the gap ends with the optimum if it ends in time, and with a true bound if it does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tofu.partitioner.solvers import few_values, held_values, window_bounds
from tofu.partitioner.solvers.anytime import Effort, close_gap, unheard
from tofu.partitioner.solvers.elimination import CostTable, eliminate
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core
from tofu.partitioner.solvers.window_bounds import WindowBounds, windows

from .problems import assert_closed, cost, optimum, pairwise_tables


def grid(rows, columns, domain=4, seed=0):
    """A problem on a grid: wider than a chain, and its windows matter."""
    random = np.random.default_rng(seed)
    number = np.arange(rows * columns).reshape(rows, columns)
    pairs = [*zip(number[:-1].flat, number[1:].flat, strict=True)]
    pairs += zip(number[:, :-1].flat, number[:, 1:].flat, strict=True)
    return [domain] * number.size, [
        CostTable((int(a), int(b)), random.integers(0, 1000, (domain, domain))) for a, b in pairs
    ]


@settings(max_examples=100)
@given(pairwise_tables())
def test_the_optimum_from_any_cost(problem):
    domains, cost_tables = problem
    best = optimum(domains, cost_tables)
    found = close_gap(domains, cost_tables, best + 7, lambda cost, bound: None)
    assert (found.cost, found.bound) == (best, best)
    assert cost(cost_tables, found.assignment) == best


@pytest.mark.parametrize("leaf", [3, 8, 40])
@pytest.mark.parametrize("seed", range(4))
def test_windows_close_the_gap_of_a_grid(monkeypatch, leaf, seed):
    monkeypatch.setattr(window_bounds, "LEAF", leaf)
    assert_closed(*grid(5, 9, seed=seed))


def test_a_best_plan_is_proven_and_kept():
    domains, cost_tables = grid(4, 8)
    best = eliminate(domains, cost_tables).optimum
    found = close_gap(domains, cost_tables, best, lambda cost, bound: None)
    assert (found.cost, found.bound, found.assignment) == (best, best, None)


def test_the_assignment_that_is_known_is_searched_from_with_little_work(monkeypatch):
    domains, cost_tables = grid(6, 9, domain=6, seed=2)
    best = eliminate(domains, cost_tables)
    little = Effort(sweep_entries=0, search_entries=0)
    monkeypatch.setattr(few_values, "KEPT", (1,))
    monkeypatch.setattr(held_values, "ROUNDS", 0)
    without = close_gap(domains, cost_tables, 2 * best.optimum, unheard, little)
    found = close_gap(domains, cost_tables, 2 * best.optimum, unheard, little, known=best.assignment)
    assert found.cost == best.optimum < without.cost
    assert cost(cost_tables, found.assignment) == best.optimum


@pytest.mark.parametrize("entries", [0, 10_000, 100_000])
def test_little_work_gives_a_bound_that_holds(entries):
    domains, cost_tables = grid(6, 9, domain=6, seed=2)
    best = eliminate(domains, cost_tables).optimum
    whole = MessagePassing(core(domains, cost_tables).problem).reweighted()
    part = WindowBounds(whole, float(2 * best - whole.bound))
    part.run(state_limits=(50, 100), entry_limit=entries, report=lambda bound: None)
    assert whole.bound <= whole.bound + part.bound <= best
    assert not part.closed


def test_windows_know_what_lies_after_and_outside():
    whole = windows(0, 160)
    assert [(w.first, w.end) for w in whole.smallest_first() if not w.halves] == [
        (0, 40),
        (40, 80),
        (80, 120),
        (120, 160),
    ]
    for window, proven in zip((w for w in whole.smallest_first() if not w.halves), (1, 2, 4, 8), strict=True):
        window.proven = proven
    assert whole.bound() == 15
    assert [whole.after(v) for v in (0, 39, 40, 80, 130, 159)] == [14, 14, 12, 8, 0, 0]
    assert [whole.outside(*w) for w in ((0, 40), (0, 80), (120, 160), (0, 160))] == [14, 12, 7, 0]
