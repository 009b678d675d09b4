from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.dataflow.layout import Layout, placed, replicated, split_layout


def test_a_split_follows_the_steps_with_the_first_most_significant() -> None:
    layout = split_layout((4, 6), (0, 1), (2, 3))
    assert layout.workers == 6
    assert [layout.region(w) for w in range(6)] == [
        ((0, 2), (0, 2)),
        ((0, 2), (2, 4)),
        ((0, 2), (4, 6)),
        ((2, 4), (0, 2)),
        ((2, 4), (2, 4)),
        ((2, 4), (4, 6)),
    ]


def test_none_replicates() -> None:
    layout = split_layout((4,), (None, 0), (2, 2))
    assert [layout.region(w) for w in range(4)] == [((0, 2),), ((2, 4),), ((0, 2),), ((2, 4),)]
    assert layout.elements() == 8


def test_replicated_and_placed() -> None:
    assert {replicated((3, 2), 3).region(w) for w in range(3)} == {((0, 3), (0, 2))}
    alone = placed((3, 2), 3, owner=1)
    assert [alone.region(w) for w in range(3)] == [((0, 0), (0, 0)), ((0, 3), (0, 2)), ((0, 0), (0, 0))]
    assert alone.elements() == 6


def test_a_scalar_tensor_has_one_empty_region() -> None:
    assert replicated((), 2).region(0) == ()
    assert replicated((), 2).elements() == 2


def test_equal_regions_are_equal_layouts() -> None:
    a, b = split_layout((4, 4), (0,), (2,)), Layout(split_layout((4, 4), (0,), (2,)).regions.copy())
    assert a == b
    assert hash(a) == hash(b)
    assert a != split_layout((4, 4), (1,), (2,))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=3),
)
def test_parts_cover_every_element_exactly_once(shape: list[int], steps: list[tuple[int, int]]) -> None:
    dimensions = [dimension % len(shape) for dimension, _ in steps]
    layout = split_layout(tuple(shape), dimensions, [factor for _, factor in steps])
    owners = np.zeros(shape, int)
    for worker in range(layout.workers):
        owners[tuple(slice(*interval) for interval in layout.region(worker))] += 1
    assert (owners == 1).all()


def test_a_layout_of_another_kind_is_unequal() -> None:
    assert split_layout((2,), (0,), (2,)) != "layout"


def test_dimensions_and_factors_go_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        split_layout((4,), (0,), (2, 2))
