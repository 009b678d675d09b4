"""Layouts by the choice of every step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.analyzer.indices.region import to_region
from tofu.partitioner.layouts.step_split import Layout, prime_factors


def regions(layout):
    return [to_region(region) for region in layout.regions]


def test_the_first_step_is_the_most_significant():
    assert regions(Layout((4, 6), (0, 1), (2, 3))) == [
        ((0, 2), (0, 2)),
        ((0, 2), (2, 4)),
        ((0, 2), (4, 6)),
        ((2, 4), (0, 2)),
        ((2, 4), (2, 4)),
        ((2, 4), (4, 6)),
    ]


def test_none_replicates():
    layout = Layout((4,), (None, 0), (2, 2))
    assert regions(layout) == [((0, 2),), ((2, 4),), ((0, 2),), ((2, 4),)]
    assert layout.parts == (2,)
    assert regions(Layout((), (None,), (2,))) == [(), ()]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=3),
)
def test_parts_cover_every_element_exactly_once(shape, steps):
    dimensions = tuple(dimension % len(shape) for dimension, _ in steps)
    layout = Layout(tuple(shape), dimensions, tuple(factor for _, factor in steps))
    owners = np.zeros(shape, int)
    for region in regions(layout):
        owners[tuple(slice(*interval) for interval in region)] += 1
    assert (owners == 1).all()


@pytest.mark.parametrize(
    ("workers", "factors"),
    [(1, ()), (2, (2,)), (7, (7,)), (12, (3, 2, 2)), (30, (5, 3, 2)), (97 * 2, (97, 2))],
)
def test_factors_are_primes_largest_first(workers, factors):
    assert prime_factors(workers) == factors
