"""Sequences near a choice are among all sequences, and all sequences are those that recursion can make."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.layouts.step_split import prime_factors
from tofu.partitioner.problem.sequences import (
    Near,
    all_sequences,
    by_batch,
    is_possible,
    near_sequences,
    sequence_count,
)

EXTENTS = st.dictionaries(st.sampled_from("ijkl"), st.integers(0, 9), max_size=4)
WORKERS = st.integers(1, 18)


@given(EXTENTS, WORKERS, st.booleans())
def test_all_sequences_are_the_possible_ones(extents, workers, replicate):
    factors = prime_factors(workers)
    found = all_sequences(extents, factors, replicate)
    every = itertools.product((*extents, None), repeat=len(factors))
    assert set(found) == {s for s in every if is_possible(extents, factors, s, replicate)}
    assert len(set(found)) == len(found) >= 1
    assert len(found) <= sequence_count(extents, factors, replicate)


@given(EXTENTS, WORKERS)
def test_replicating_adds_sequences_and_takes_none(extents, workers):
    factors = prime_factors(workers)
    narrow, wide = (set(all_sequences(extents, factors, replicate)) for replicate in (False, True))
    assert narrow <= wide
    assert (None,) * len(factors) in wide


@given(st.data(), EXTENTS, WORKERS, st.booleans(), st.booleans())
def test_near_sequences_differ_in_one_step_or_in_order(data, extents, workers, reorder, replicate):
    factors = prime_factors(workers)
    every = all_sequences(extents, factors, replicate)
    centre = data.draw(st.sampled_from(every))
    near = near_sequences(extents, factors, centre, reorder, replicate)
    assert near[0] == centre
    assert len(set(near)) == len(near)
    one_step = {s for s in every if sum(a != b for a, b in zip(s, centre, strict=True)) <= 1}
    if not reorder:
        assert set(near) == one_step
    elif len(factors) <= 3:
        assert set(near) == one_step | {s for s in every if sorted(map(str, s)) == sorted(map(str, centre))}
    else:
        assert one_step <= set(near) <= set(every)


@given(st.data(), EXTENTS, WORKERS, st.booleans(), st.booleans())
def test_a_neighbourhood_may_have_several_centres(data, extents, workers, reorder, replicate):
    factors = prime_factors(workers)
    every = all_sequences(extents, factors, replicate)
    some = st.lists(st.sampled_from(every), max_size=2, unique=True).map(tuple)
    near = Near(data.draw(some), data.draw(some), reorder, replicate)
    found = near.sequences(extents, factors)
    around = [near_sequences(extents, factors, centre, reorder, replicate) for centre in near.centres]
    assert set(found) == set(near.others).union(*around)
    assert len(set(found)) == len(found)
    assert found[: len(near.centres[:1])] == near.centres[:1]


@given(st.lists(st.integers(1, 20), max_size=3).map(tuple), WORKERS)
def test_inputs_are_fed_along_their_first_dimension_as_long_as_it_lasts(shape, workers):
    factors = prime_factors(workers)
    fed = by_batch(shape, factors)
    first = dict(enumerate(shape[:1]))
    assert is_possible(first, factors, fed, replicate=False)
