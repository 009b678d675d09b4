"""Arithmetic on boxes."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.analyzer.indices import region
from tofu.analyzer.indices.region import Boxes


def boxes(*regions: list[tuple[int, int]]) -> Boxes:
    return np.array(regions, np.int64)


def test_whole() -> None:
    box = region.whole((3, 0))
    assert box.dtype == np.int64
    assert box.tolist() == [[0, 3], [0, 0]]
    assert region.whole(()).shape == (0, 2)


def test_to_region_gives_python_integers() -> None:
    assert region.to_region(region.whole((3, 2))) == ((0, 3), (0, 2))
    assert type(region.to_region(region.whole((3,)))[0][1]) is int


def test_volume() -> None:
    assert region.volume(boxes([(0, 3), (2, 4)], [(1, 1), (0, 5)], [(4, 2), (5, 1)])).tolist() == [6, 0, 0]
    assert region.volume(region.whole(())[None]).tolist() == [1]


def test_intersect() -> None:
    a = boxes([(0, 5), (2, 9)], [(0, 3), (0, 3)])
    b = boxes([(3, 8), (0, 4)], [(5, 8), (1, 2)])
    assert region.intersect(a, b).tolist() == [[[3, 5], [2, 4]], [[5, 5], [1, 2]]]
    assert region.intersect(a[:, None], b[None]).shape == (2, 2, 2, 2)


def test_split_is_uneven_where_it_must_be() -> None:
    parts = region.split(np.array([[0, 4], [3, 10]]), [1], [3])
    assert parts.tolist() == [[[0, 4], [3, 5]], [[0, 4], [5, 7]], [[0, 4], [7, 10]]]


def test_later_steps_split_the_parts_of_earlier_ones() -> None:
    parts = region.split(region.whole((4, 6)), [0, None, 1], [2, 2, 3])
    assert parts.shape == (12, 2, 2)
    assert parts[:, 0].tolist() == [[0, 2]] * 6 + [[2, 4]] * 6
    assert parts[:, 1].tolist() == [[0, 2], [2, 4], [4, 6]] * 4


def test_steps_and_factors_belong_together() -> None:
    with pytest.raises(ValueError, match="shorter"):
        region.split(region.whole((4,)), [0, 0], [2])


def test_hull() -> None:
    a = boxes([(2, 5), (1, 2)], [(0, 0), (3, 4)], [(0, 1), (0, 1)], [(1, 1), (2, 2)])
    b = boxes([(0, 3), (4, 6)], [(7, 9), (5, 6)], [(4, 4), (0, 9)], [(5, 5), (5, 7)])
    assert region.hull(a, b).tolist() == [
        [[0, 5], [1, 6]],
        [[7, 9], [5, 6]],
        [[0, 1], [0, 1]],
        [[0, 0], [0, 0]],
    ]
    assert region.hull(a, b).tolist() == region.hull(b, a).tolist()


@pytest.mark.parametrize(("interval", "size"), [((3, 17), 4), ((0, 12), 4), ((5, 6), 10), ((2, 2), 3)])
def test_even_cuts_make_up_the_interval(interval: tuple[int, int], size: int) -> None:
    cuts = region.even_cuts(interval, size)
    assert [place for cut in cuts for place in range(*cut)] == list(range(*interval))
    lengths = [upper - lower for lower, upper in cuts]
    assert all(0 < length <= size for length in lengths)
    assert max(lengths, default=0) - min(lengths, default=0) <= 1
