"""The checker's arithmetic on regions, against sets of elements."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.errors import ProgramError
from tofu.programs.plain_regions import check_tiling, common, inside, lacking, overlapping, size, split_region

interval = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda ends: (min(ends), max(ends)))


def regions(rank):
    return st.tuples(*[interval] * rank)


some = st.integers(0, 3).flatmap(lambda rank: st.lists(regions(rank), min_size=2, max_size=5))


def elements(region):
    return set(product(*(range(*interval) for interval in region)))


@given(some)
def test_regions_are_sets_of_elements(found):
    one, other, *_ = found
    assert size(one) == len(elements(one))
    assert elements(common(one, other)) == elements(one) & elements(other)
    assert inside(one, other) == (elements(one) <= elements(other))


@given(some)
def test_what_is_lacking_is_not_covered(found):
    whole, *parts = found
    rest = elements(whole) - set().union(*map(elements, parts))
    lack = lacking(whole, parts)
    assert (lack is None) == (not rest)
    assert lack is None or (elements(lack) and elements(lack) <= rest)


@given(some)
def test_every_overlapping_pair_is_found_once(found):
    distinct = sorted(set(found))
    pairs = [tuple(sorted(pair)) for pair in overlapping(distinct)]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == {pair for pair in combinations(distinct, 2) if elements(pair[0]) & elements(pair[1])}


@given(some)
def test_only_tilings_pass(found):
    whole, *parts = found
    distinct = set(parts)
    disjoint = sum(len(elements(part)) for part in distinct) == len(elements(whole))
    tiled = disjoint and set().union(*map(elements, distinct)) == elements(whole)
    tiled = tiled and (all(map(size, distinct)) or not size(whole))
    if tiled and all(inside(part, whole) for part in distinct):
        check_tiling(whole, parts, "here")
    else:
        with pytest.raises(ProgramError, match="here"):
            check_tiling(whole, parts, "here")


@given(st.data())
def test_workers_parts_tile_the_region(data):
    region = data.draw(regions(2))
    axes = data.draw(st.lists(st.sampled_from([0, 1, None]), max_size=3))
    factors = [data.draw(st.integers(1, 3)) for _ in axes]
    parts = split_region(region, axes, factors)
    assert len(parts) == prod(factors)
    assert set().union(*map(elements, parts)) == elements(region)
    for one, other in combinations(set(parts), 2):
        assert not elements(one) & elements(other)
