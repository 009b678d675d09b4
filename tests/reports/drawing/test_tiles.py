"""Tiles say of every element of a tensor which workers' regions it is in."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.analyzer.indices.region import split, whole
from tofu.operators.declare import parse
from tofu.reports.drawing.tiles import MOST_TILES, Plane, halo, own_parts, plane, plane_of_parts


@st.composite
def tensors(draw: st.DrawFn) -> tuple[tuple[int, ...], np.ndarray]:
    """A shape and a region of it per worker, some of them empty."""
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    regions = []
    for _ in range(draw(st.integers(1, 5))):
        bounds = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in shape]
        regions.append(np.array(bounds, np.int64).reshape(len(shape), 2))
    return shape, np.stack(regions)


def by_element(drawn: Plane) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The workers of every element, as drawn; fails where tiles overlap."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for panel in drawn.panels:
        for tile in panel.tiles:
            box = [(0, extent) for extent in drawn.shape]
            placed = zip(drawn.axes, (drawn.rows[tile.row], drawn.columns[tile.column]), strict=True)
            for axis, interval in (*panel.at, *placed):
                if axis is not None:
                    box[axis] = interval
            for element in product(*(range(lower, upper) for lower, upper in box)):
                assert element not in found
                found[element] = tile.workers
    return found


@given(tensors())
def test_tiles_are_what_every_element_says(tensor: tuple[tuple[int, ...], np.ndarray]) -> None:
    shape, regions = tensor
    drawn = by_element(plane(shape, regions))
    assert drawn == {
        element: tuple(
            worker
            for worker, region in enumerate(regions.tolist())
            if all(low <= at < high for at, (low, high) in zip(element, region, strict=True))
        )
        for element in product(*map(range, shape))
    }


@given(tensors(), st.data())
def test_tiles_of_parts_name_their_holders(
    tensor: tuple[tuple[int, ...], np.ndarray], data: st.DataObject
) -> None:
    """Several parts may be on one worker, and workers may have none."""
    shape, regions = tensor
    holders = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(regions), max_size=len(regions))))
    drawn = plane_of_parts(shape, holders, regions, 4)
    assert drawn.workers == 4
    apart = by_element(plane(shape, regions))
    expected = {element: sorted({int(holders[row]) for row in rows}) for element, rows in apart.items()}
    assert {element: list(found) for element, found in by_element(drawn).items()} == expected


def test_too_many_tiles_are_joined() -> None:
    """No more are drawn than can be seen, and each names all who hold a part of it."""
    side, workers = 300, 7
    diagonal = np.array([[[n, n + 1], [n, n + 1]] for n in range(side)], np.int64)
    holders = np.arange(side) % workers
    drawn = plane_of_parts((side, side), holders, diagonal, workers)
    (panel,) = drawn.panels
    assert len(panel.tiles) <= MOST_TILES < side * side
    for intervals in (drawn.rows, drawn.columns):
        assert (intervals[0][0], intervals[-1][1]) == (0, side)
        assert all(before[1] == after[0] for before, after in pairwise(intervals))
    for tile in panel.tiles:
        (top, bottom), (left, right) = drawn.rows[tile.row], drawn.columns[tile.column]
        inside = {n % workers for n in range(max(top, left), min(bottom, right))}
        assert set(tile.workers) == inside


def test_the_dimensions_that_are_cut_are_drawn() -> None:
    drawn = plane((8, 3, 6, 6), split(whole((8, 3, 6, 6)), (0, 2), (2, 2)))
    assert drawn.axes == (0, 2)
    assert (drawn.rows, drawn.columns) == (((0, 4), (4, 8)), ((0, 3), (3, 6)))
    assert len(drawn.panels) == 1
    three = plane((8, 4, 6), split(whole((8, 4, 6)), (0, 1, 2), (2, 2, 2)))
    assert [panel.at for panel in three.panels] == [((2, (0, 3)),), ((2, (3, 6)),)]
    assert plane((), np.zeros((2, 0, 2), np.int64)).axes == (None, None)
    assert plane((4,), split(whole((4,)), (0,), (2,))).axes == (None, 0)


def test_halos_are_what_is_read_beyond_a_part() -> None:
    bound = parse("def blur(a, k): return lambda i: Sum(lambda j: a[i + j] * k[j])").bind(
        {"a": (15,), "k": (4,)}
    )
    read = bound.input_regions(bound.split(("i",), (3,)))["a"]
    assert read[:, 0].tolist() == [[0, 7], [4, 11], [8, 15]]
    assert own_parts(read)[:, 0].tolist() == [[0, 5], [5, 9], [9, 15]]
    assert halo(read) == {0: 2}


@pytest.mark.parametrize("dimensions", [(0,), (1,), (None,)])
def test_what_is_split_or_shared_whole_has_no_halo(dimensions: tuple[int | None, ...]) -> None:
    assert halo(split(whole((4, 6)), dimensions, (2,))) == {}
