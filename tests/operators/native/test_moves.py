"""Copies and combinations in C have NumPy's bits, on any view, and leave the rest to NumPy."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.operators.kernels.c_run import CRun
from tofu.operators.kernels.kernel import Array, Run
from tofu.operators.native.call_list import call_list
from tofu.operators.native.moves import MOST_TERMS, combined, copied
from tofu.tdl.ast import Reducer
from tofu.tdl.reducers import UFUNCS

TYPES = ("float32", "float64", "int32", "int64", "float16", "int8")


def view(shape: tuple[int, ...], dtype: str, seed: int, cut: bool) -> Array:
    """Return numbers, as a part of a larger array if `cut`."""
    whole = np.random.default_rng(seed).integers(-9, 9, [extent + 3 for extent in shape]).astype(dtype)
    if cut:
        return whole[tuple(slice(1, extent + 1) for extent in shape)]
    return np.ascontiguousarray(whole[tuple(slice(extent) for extent in shape)]).reshape(shape)


def run_in_list(run: Run | None) -> None:
    """Run what a run calls in C."""
    assert isinstance(run, CRun)
    memory = array("q", [0, 0])
    running = memory.buffer_info()[0]
    call_list([(0, call) for call in run.calls], running, running + memory.itemsize)()


SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)


@pytest.mark.usefixtures("native")
@settings(max_examples=60, deadline=None)
@given(
    shape=SHAPES, dtype=st.sampled_from(TYPES), cut=st.booleans(), over=st.booleans(), seed=st.integers(0, 9)
)
def test_copies_are_exact_and_write_nothing_else(
    shape: tuple[int, ...], dtype: str, cut: bool, over: bool, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(shape))
    source = view(shape, dtype, seed, cut).transpose(order)
    source = np.flip(source) if seed % 2 else source
    frame = np.full([extent + 2 for extent in source.shape], 77, dtype)
    inside = tuple(slice(1, extent + 1) for extent in source.shape)
    target = frame[(..., *inside)] if over else np.zeros(source.shape, dtype)
    run_in_list(copied(source, target))
    assert target.tobytes() == source.tobytes()
    if over:
        assert (frame != 77).sum() <= source.size


@pytest.mark.usefixtures("native")
def test_bits_of_numbers_that_are_none_are_copied() -> None:
    source = np.array([0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000], np.uint32).view(np.float32)
    target = np.zeros_like(source)
    run_in_list(copied(source, target))
    assert target.tobytes() == source.tobytes()


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("reducer", list(Reducer))
@pytest.mark.parametrize("count", [1, 2, MOST_TERMS, MOST_TERMS + 1, 2 * MOST_TERMS + 3])
def test_terms_are_combined_in_their_order(reducer: Reducer, count: int) -> None:
    terms = list(np.random.default_rng(count).normal(size=(count, 6, 50)).astype(np.float32))
    terms[0][0, :2] = np.nan, -np.inf
    wanted = terms[0].copy()
    for term in terms[1:]:
        UFUNCS[reducer](wanted, term, out=wanted)
    target = np.zeros((6, 50), np.float32)
    runs = combined(reducer, terms, target)
    assert runs is not None
    for run in runs:
        run()
    np.testing.assert_array_equal(target, wanted)


@pytest.mark.usefixtures("native")
def test_a_term_may_lie_in_the_target() -> None:
    target, term = np.ones((3, 4), np.float32), np.full((3, 4), 2, np.float32)
    runs = combined(Reducer.SUM, (target, term), target)
    assert runs is not None
    for run in runs:
        run()
    assert (target == 3).all()


@pytest.mark.usefixtures("native")
def test_other_types_are_left_to_numpy() -> None:
    half = np.ones(4, np.float16)
    assert copied(half, np.ones(4, np.float32)) is None
    assert combined(Reducer.SUM, [half, half], half.copy()) is None
    assert combined(Reducer.SUM, [half, half], np.ones(4, np.float32)) is None
    whole = np.ones(4, np.int32)
    assert combined(Reducer.SUM, [whole, whole], whole.copy()) is None


def test_numpy_moves_unless_c_is_asked_for() -> None:
    source = np.ones(4, np.float32)
    assert copied(source, source.copy()) is None
    assert combined(Reducer.SUM, [source, source], source.copy()) is None
