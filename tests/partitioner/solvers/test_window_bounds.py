"""Windows prove bounds that never exceed the optimum, and close the gap if they may take all states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.solvers import window_bounds
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.pairwise import core
from tofu.partitioner.solvers.window_bounds import STATE_LIMITS, WindowBounds, windows

from .problems import assignments, pairwise_tables


@given(pairwise_tables(), st.integers(1, 20))
def test_the_gap_closes_at_the_optimum(problem, above):
    reweighted = MessagePassing(core(*problem).problem).reweighted()
    best = min(map(reweighted.cost, assignments(reweighted.domains)))
    raised = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_bounds, "LEAF", 2)
        bounds = WindowBounds(reweighted, best + above)
        bounds.run(STATE_LIMITS, 1 << 20, raised.append)
    assert bounds.closed
    assert bounds.bound == bounds.best == best == reweighted.cost(bounds.assignment)
    assert raised == sorted(raised)


@given(pairwise_tables(), st.integers(1, 30))
def test_with_few_states_the_bound_is_still_one(problem, states):
    reweighted = MessagePassing(core(*problem).problem).reweighted()
    best = min(map(reweighted.cost, assignments(reweighted.domains)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_bounds, "LEAF", 2)
        bounds = WindowBounds(reweighted, best + 5)
        bounds.run([states], 1 << 10, lambda bound: None)
    assert bounds.bound <= best
    assert bounds.assignment is None or reweighted.cost(bounds.assignment) == bounds.best < best + 5


@given(st.integers(0, 30), st.integers(1, 300))
def test_windows_halve_down_to_short_ones(first, count):
    whole = windows(first, first + count)
    short = [window for window in whole.smallest_first() if not window.halves]
    assert [v for window in short for v in range(window.first, window.end)] == list(
        range(first, first + count)
    )
    assert all(1 <= window.end - window.first <= window_bounds.LEAF for window in short)
    assert list(whole.smallest_first())[-1] is whole
    for number, window in enumerate(short):
        window.proven = float(2**number)
    half = short[len(short) // 2]
    assert whole.bound() == sum(window.proven for window in short)
    assert whole.outside(half.first, half.end) == whole.bound() - half.proven
    assert whole.after(half.end - 1) == sum(window.proven for window in short if window.first >= half.end)
