"""Operations on tables, against sums over all assignments; equal results are one table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.solvers import semiring
from tofu.partitioner.solvers.min_plus import MIN_PLUS
from tofu.partitioner.solvers.semiring import Semiring, TableArithmetic

SUM_PRODUCT = Semiring(
    np.multiply, lambda table, axis: np.asarray(table.sum(axis=axis)), lambda v: int(v.argmax())
)
SHAPE = (3, 2, 4)
SCOPES = ((0,), (2,), (0, 1), (1, 2), (0, 1, 2))


@pytest.mark.parametrize("pieces_of", [1, 4, 1 << 16])
@given(st.lists(st.sampled_from(SCOPES), min_size=1, max_size=4), st.integers(0, 2), st.integers(0, 99))
def test_a_variable_is_eliminated_from_the_product(pieces_of, scopes, axis, seed):
    scopes = [*scopes, (0, 1, 2)]
    random = np.random.default_rng(seed)
    tables = [random.integers(-9, 9, [SHAPE[v] for v in scope]) for scope in scopes]
    spread = [
        table.reshape([SHAPE[v] if v in scope else 1 for v in range(3)])
        for table, scope in zip(tables, scopes, strict=True)
    ]
    parts = tuple(scopes), axis
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semiring, "PIECE_ENTRIES", pieces_of)
        left, constant = TableArithmetic(MIN_PLUS).eliminate(tables, parts)
        product, none = TableArithmetic(SUM_PRODUCT).eliminate(tables, parts)
    np.testing.assert_array_equal(left + constant, sum(spread).min(axis=axis))
    assert left.min() == 0
    np.testing.assert_array_equal(product, np.prod(np.broadcast_arrays(*spread), axis=0).sum(axis=axis))
    assert none is None


def test_floats_keep_their_minimum():
    table = np.array([[0.5, 1.5], [2.5, 0.25]])
    left, constant = TableArithmetic(MIN_PLUS).eliminate([table], (((0, 1),), 0))
    np.testing.assert_array_equal(left + constant, [0.5, 0.25])


@given(st.lists(st.integers(0, 2), max_size=40))
def test_a_product_counts_equal_tables(picked):
    tables = [np.array([1, 5]), np.array([2, 3]), np.array([1, 2])]
    factors = [tables[number] for number in picked]
    found = TableArithmetic(SUM_PRODUCT).product(factors)
    if not factors:
        assert found is None
        return
    sums = TableArithmetic(MIN_PLUS).product(factors)
    np.testing.assert_array_equal(sums, np.sum(factors, axis=0))
    np.testing.assert_array_equal(found, np.multiply.reduce(factors, axis=0))


def test_axes_are_picked_and_put_in_order():
    table = np.arange(24).reshape(2, 3, 4)
    found = TableArithmetic(MIN_PLUS).select(table, (None, 2, None), (1, 0))
    np.testing.assert_array_equal(found, table[:, 2, :].T)


def test_equal_results_are_one_table_and_are_computed_once():
    arithmetic = TableArithmetic(MIN_PLUS)
    a, b, c = np.array([1, 2]), np.array([3, 4]), np.array([2, 1])
    first = arithmetic.multiply(a, b)
    np.testing.assert_array_equal(first, [4, 6])
    assert arithmetic.multiply(a, b) is first
    assert arithmetic.multiply(c, np.array([2, 5])) is first


def test_min_plus_chooses_the_first_of_the_least():
    assert MIN_PLUS.choose(np.array([3, 1, 1])) == 1


def test_results_that_take_too_much_memory_are_forgotten(monkeypatch):
    monkeypatch.setattr(semiring, "KEPT_BYTES", 100)
    rng = np.random.default_rng(0)
    arithmetic = TableArithmetic(MIN_PLUS)
    for _ in range(10):
        table = rng.integers(0, 9, (6, 5))
        left, constant = arithmetic.eliminate([table], (((0, 1),), 1))
        np.testing.assert_array_equal(left + constant, table.min(axis=1))
        again, _ = arithmetic.eliminate([table], (((0, 1),), 1))
        assert again is left
        assert len(arithmetic._distinct) <= 3
