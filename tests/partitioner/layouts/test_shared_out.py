"""Holders of one region share it out evenly, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tofu.partitioner.layouts.shared_out import shared_out

INTERVALS = np.array([[0, 6], [6, 8], [8, 9]])


@given(arrays(np.int64, (2, 5, 2), elements=st.integers(0, 2)))
def test_every_holder_has_a_part_of_its_own(picked):
    regions = INTERVALS[picked]
    for found, held in zip(shared_out(regions), regions, strict=True):
        for holder, region in enumerate(held):
            alike = [other for other, each in enumerate(held) if (each == region).all()]
            lengths = region[:, 1] - region[:, 0]
            axis = int(lengths.argmax())
            part = region.copy()
            if lengths[axis] >= len(alike):
                number, count = alike.index(holder), len(alike)
                part[axis] = region[axis, 0] + np.array([number, number + 1]) * lengths[axis] // count
            np.testing.assert_array_equal(found[holder], part)


@pytest.mark.parametrize("shape", [(4, 0, 2), (3, 0, 2, 2), (0, 4, 1, 2)])
def test_without_holders_or_dimensions_nothing_changes(shape):
    assert shared_out(np.zeros(shape, np.int64)).shape == shape
