"""Compiled loops, against NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.solvers import min_plus
from tofu.partitioner.solvers.bounded_search import BoundedSearch, Search, StateLimitError
from tofu.partitioner.solvers.message_passing import MessagePassing
from tofu.partitioner.solvers.min_plus import MIN_PLUS, compiled_loops, least_differences
from tofu.partitioner.solvers.pairwise import core
from tofu.partitioner.solvers.semiring import project_in_pieces

from .problems import pairwise_tables

NEVER = 1 << 60
SHAPE = (3, 2, 4, 2)


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    pytest.importorskip("numba")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_plus, "COMPILED_SUMS", 1)
        patch.setattr(min_plus, "IMPORTED_SUMS", 1)
        yield


def test_small_sums_are_not_compiled(monkeypatch):
    monkeypatch.setattr(min_plus, "COMPILED_SUMS", 10)
    assert compiled_loops(9) is None
    assert compiled_loops(10) is not None


def test_single_passes_import_numba_only_for_large_tables():
    """Run in a process of its own, because numba stays imported."""
    script = """
import sys
import numpy as np
from tofu.partitioner.solvers import min_plus
min_plus.COMPILED_SUMS, min_plus.IMPORTED_SUMS, min_plus.PIECE_ENTRIES = 8, 64, 1
tables = [np.arange(9).reshape(1, 3, 3), np.arange(9).reshape(3, 3, 1)]
min_plus.MIN_PLUS.project(tables, 1)
assert "numba" not in sys.modules
min_plus.MIN_PLUS.project([np.zeros((4, 4, 4))], 1)
assert "numba" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@given(st.lists(st.sets(st.integers(0, 3)), max_size=4), st.integers(0, 3), st.integers(0, 99))
def test_tables_are_projected(dtype, scopes, axis, seed):
    random = np.random.default_rng(seed)
    tables = [
        random.integers(-9, 9, [extent if v in scope else 1 for v, extent in enumerate(SHAPE)]).astype(dtype)
        for scope in [*scopes, {0, 1, 2, 3}]
    ]
    found = MIN_PLUS.project(tables, axis)
    np.testing.assert_array_equal(found, project_in_pieces(MIN_PLUS, tables, axis))
    assert found.dtype == dtype


def test_tables_too_large_for_one_sum_are_projected_in_pieces(monkeypatch):
    tables = [np.arange(24).reshape(3, 2, 4), np.arange(8).reshape(1, 2, 4)]
    expected = MIN_PLUS.project(tables, 1)
    monkeypatch.setattr(min_plus, "FACTOR_LIMIT", 7)
    np.testing.assert_array_equal(MIN_PLUS.project(tables, 1), expected)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_differences(count, length, seed):
    rows = np.random.default_rng(seed).integers(-9, 9, (count, length))
    np.testing.assert_array_equal(least_differences(rows), (rows[:, None] - rows[None]).min(axis=-1))


@given(pairwise_tables())
def test_sweeps_send_the_same_messages(tables):
    problem = core(*tables).problem
    compiled = MessagePassing(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_plus, "COMPILED_SUMS", NEVER)
        plain = MessagePassing(problem)
    for _ in range(3):
        assert compiled.sweep() == plain.sweep()
    _assert_same(compiled.sent, plain.sent)
    MessagePassing(problem, compiled.sent).sweep()  # which leaves the messages that it is given as they are
    _assert_same(compiled.sent, plain.sent)


def _assert_same(found, expected):
    assert found.keys() == expected.keys()
    for pair, message in expected.items():
        np.testing.assert_array_equal(found[pair], message)


@given(pairwise_tables(), st.integers(0, 40), st.sampled_from([None, 2, 5]), st.sampled_from([3, 1 << 22]))
def test_states_are_extended_the_same_way(tables, budget, beam, state_limit):
    problem = MessagePassing(core(*tables).problem).reweighted()
    search = Search(0, len(problem.domains), budget, state_limit=state_limit, beam=beam)
    compiled = BoundedSearch(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_plus, "COMPILED_SUMS", NEVER)
        plain = BoundedSearch(problem)
    assert _outcome(compiled, search) == _outcome(plain, search)
    assert compiled.entries == plain.entries


def _outcome(bounded, search):
    try:
        return bounded.least_cost(search), bounded.assignment(search)
    except StateLimitError as error:
        return str(error)
