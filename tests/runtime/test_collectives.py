"""Pieces reach their places, terms are combined in their order, and bytes are counted as they move."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.kernels.c_run import CRun
from tofu.operators.kernels.workspace import Workspace
from tofu.runtime.collectives import FetchedBytes, Transfer, fixed_order_reduce, multi_fetch
from tofu.tdl.ast import Reducer, ReducerCall
from tofu.tdl.traverse import walk


@pytest.fixture(params=["NumPy", "C"], autouse=True)
def computed_by(request: pytest.FixtureRequest) -> str:
    """Run every test with both."""
    if request.param == "C":
        request.getfixturevalue("native")
    return str(request.param)


def test_c_is_used_if_it_is_asked_for(computed_by: str) -> None:
    source, target = np.ones(3, np.float32), np.zeros(3, np.float32)
    transfers = [Transfer(source, target, True)]
    steps = [
        multi_fetch(transfers, FetchedBytes()),
        fixed_order_reduce(Reducer.SUM, [transfers, transfers], FetchedBytes(), Workspace()),
    ]
    assert [isinstance(step, CRun) for step in steps] == [computed_by == "C"] * 2


def test_terms_may_be_cut_at_other_places() -> None:
    first, second, third = np.arange(6.0).reshape(2, 3), np.full((2, 1), 10.0), np.full((2, 2), 20.0)
    target, fetched = np.zeros((2, 3)), FetchedBytes()
    terms = [
        [Transfer(first, target, False)],
        [Transfer(second, target[:, :1], True), Transfer(third, target[:, 1:], False)],
    ]
    fixed_order_reduce(Reducer.SUM, terms, fetched, Workspace())()
    np.testing.assert_array_equal(target, [[10, 21, 22], [13, 24, 25]])
    assert fetched.nbytes == second.nbytes


def test_tensors_without_dimensions_move() -> None:
    target, source = np.zeros(()), np.array(3.0)
    multi_fetch([Transfer(source, target, True)], FetchedBytes())()
    assert target == 3
    terms = [[Transfer(source, target, True)]] * 3
    fixed_order_reduce(Reducer.SUM, terms, FetchedBytes(), Workspace())()
    assert target == 9


def test_pieces_reach_their_places_every_time() -> None:
    here, there, target = np.arange(3.0), np.arange(10.0, 14.0), np.zeros(7)
    fetched = FetchedBytes()
    run = multi_fetch([Transfer(here, target[:3], False), Transfer(there, target[3:], True)], fetched)
    run()
    np.testing.assert_array_equal(target, [0, 1, 2, 10, 11, 12, 13])
    assert fetched.nbytes == there.nbytes
    there[:] = 5
    run()
    np.testing.assert_array_equal(target[3:], [5, 5, 5, 5])
    assert fetched.nbytes == 2 * there.nbytes


@pytest.mark.parametrize(
    ("reducer", "combine"),
    [(Reducer.SUM, np.sum), (Reducer.PROD, np.prod), (Reducer.MAX, np.max), (Reducer.MIN, np.min)],
)
def test_terms_are_combined(reducer: Reducer, combine: object) -> None:
    terms = np.random.default_rng(0).normal(size=(3, 8))
    target, fetched = np.zeros(8), FetchedBytes()
    pieces = [
        [Transfer(term[:5], target[:5], number > 0), Transfer(term[5:], target[5:], True)]
        for number, term in enumerate(terms)
    ]
    fixed_order_reduce(reducer, pieces, fetched, Workspace())()
    np.testing.assert_array_equal(target, combine(terms, axis=0))  # type: ignore[operator]
    assert fetched.nbytes == terms.nbytes - 5 * 8


def test_the_order_is_the_one_given() -> None:
    target = np.zeros(1, np.float32)
    terms = [np.array([value], np.float32) for value in (1e8, 1.0, -1e8)]
    for order, rounded in (((0, 1, 2), 0.0), ((0, 2, 1), 1.0)):
        pieces = [[Transfer(terms[number], target, True)] for number in order]
        fixed_order_reduce(Reducer.SUM, pieces, FetchedBytes(), Workspace())()
        assert target[0] == rounded


def test_reducers_of_users_combine_too() -> None:
    text = "def f(a):\n    farther = Reducer(lambda x, y: where(abs(x) < abs(y), y, x), 0)\n"
    text += "    return lambda i: farther(lambda k: a[i, k])"
    (reducer,) = [node.reducer for node in walk(tdl.parse(text)) if isinstance(node, ReducerCall)]
    target = np.zeros(3)
    terms = [np.array([1.0, -5.0, 2.0]), np.array([-3.0, 4.0, -2.0])]
    fixed_order_reduce(reducer, [[Transfer(t, target, False)] for t in terms], FetchedBytes(), Workspace())()
    np.testing.assert_array_equal(target, [-3.0, -5.0, 2.0])
