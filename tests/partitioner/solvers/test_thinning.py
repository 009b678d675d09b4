"""Thinned runs: what stays is of the run or below it, within the limit, wherever the run lies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.solvers.runs import Runs, reduced, shifted
from tofu.partitioner.solvers.thinning import _thinned, thinned

LONGEST_LIMIT = 12


@st.composite
def tables(draw):
    """Two entries, one of which may be short or empty."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = draw(st.lists(st.integers(0, 200), min_size=2, max_size=2))
    owners = np.repeat([0, 1], counts)
    times, memory = random.integers(0, 10_000, (2, len(owners)))
    return Runs((2,), *reduced(owners, times, memory, 2))


@st.composite
def long_tables(draw):
    """Two entries without points above others. The first one has more points than any limit."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = draw(st.integers(LONGEST_LIMIT + 1, 200)), draw(st.integers(0, 200))
    entries = [np.sort(random.choice(10_000, (2, count), replace=False)) for count in counts]
    times, memory = np.concatenate(entries, axis=1)
    found = Runs((2,), *reduced(np.repeat([0, 1], counts), 10_000 - times, memory, 2))
    assert tuple(found.lengths) == counts
    return found


def are_equal(one, other):
    return all(map(np.array_equal, one.arrays, other.arrays))


def run_of(table, entry):
    part = slice(table.offsets[entry], table.offsets[entry + 1])
    return list(zip(table.times[part].tolist(), table.memory[part].tolist(), strict=True))


@given(tables(), st.integers(3, LONGEST_LIMIT))
def test_points_stay_within_the_limit_with_both_ends_and_corners_are_below(table, limit):
    upper, lower = thinned(table, limit, corners=False), thinned(table, limit, corners=True)
    for entry in range(2):
        before, above, below = run_of(table, entry), run_of(upper, entry), run_of(lower, entry)
        assert len(above) == len(below) <= limit
        assert set(above) <= set(before)
        assert before[:1] == above[:1] == below[:1]
        assert before[-1:] == above[-1:] == below[-1:]
        assert len(before) > limit or before == above == below
        assert all(any(t <= time and m <= size for t, m in below) for time, size in before)
        assert all(a[0] > b[0] and a[1] < b[1] for a, b in pairwise(below))


@given(tables(), st.integers(3, LONGEST_LIMIT), st.booleans())
def test_moving_a_table_moves_the_result(table, limit, corners):
    moved = thinned(shifted(table, 12_345, -678), limit, corners=corners)
    expected = shifted(thinned(table, limit, corners=corners), 12_345, -678)
    assert are_equal(moved, expected)


@given(long_tables(), st.integers(3, LONGEST_LIMIT), st.booleans())
def test_the_compiled_loop_does_what_arrays_do(table, limit, corners):
    pytest.importorskip("numba")
    assert are_equal(thinned(table, limit, corners=corners), _thinned(table, limit, corners))
