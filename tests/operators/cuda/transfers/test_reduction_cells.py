"""Cells of a reduction: none crosses an edge of any term's pieces, and together they are the target."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.transfers.reduction_cells import Pair, cells

from ..moving import cut, generators

ORIGIN = 0x100000


def pieces(target: DeviceView, places: list[tuple[slice, ...]], source: int) -> list[Pair]:
    """Each place's part of a source that is laid out as row-major, whole."""
    whole = DeviceView.dense(source, target.shape, target.type)
    return [(whole[place], target[place]) for place in places]


def addresses(view: DeviceView) -> list[int]:
    """Of all elements, in the order of their indices."""
    steps = [np.arange(length) * stride for length, stride in zip(view.shape, view.strides, strict=True)]
    total = np.full(view.shape, view.address)
    for axis, step in enumerate(steps):
        total += step.reshape(-1, *(1,) * (view.ndim - 1 - axis))
    found: list[int] = total.reshape(-1).tolist()
    return found


def test_random_cuts() -> None:
    for rng in generators(80):
        shape = tuple(rng.integers(1, 7, rng.integers(0, 5)).tolist())
        target = DeviceView.dense(ORIGIN, shape, "float32", rng.permutation(len(shape)).tolist())
        if shape and rng.random() < 0.3:
            target = target[tuple(slice(None, None, -1) for _ in shape)]
        counts = rng.integers(1, 6, rng.integers(1, 5)).tolist()
        terms = [
            pieces(target, [place[1:] for place in cut(shape, count, rng)], 0x200000 * (number + 1))
            for number, count in enumerate(counts)
        ]
        found = cells(terms)
        rows = [row for cell in found for row in zip(*map(addresses, cell), strict=True)]
        whole = [
            target,
            *(DeviceView.dense(0x200000 * (number + 1), shape, "float32") for number in range(len(terms))),
        ]
        assert sorted(rows) == sorted(zip(*map(addresses, whole), strict=True))
        assert len(found) >= max(len(term) for term in terms)


def test_equal_cuts_are_the_cells() -> None:
    target = DeviceView.dense(ORIGIN, (6, 4), "float32")
    halves: list[tuple[slice, ...]] = [(slice(0, 3),), (slice(3, 6),)]
    found = cells([pieces(target, halves, 0x200000), pieces(target, halves[::-1], 0x300000)])
    assert [cell[0] for cell in found] == [target[half] for half in halves]
    assert all(len(cell) == 3 for cell in found)


def test_crossed_cuts() -> None:
    target = DeviceView.dense(ORIGIN, (6, 4), "float32")
    rows: list[tuple[slice, ...]] = [(slice(0, 3),), (slice(3, 6),)]
    columns: list[tuple[slice, ...]] = [(slice(None), slice(0, 1)), (slice(None), slice(1, 4))]
    found = cells([pieces(target, rows, 0x200000), pieces(target, columns, 0x300000)])
    assert sorted(cell[0].shape for cell in found) == [(3, 1), (3, 1), (3, 3), (3, 3)]


@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (1, 5, 1), (5, 1, 1), (1, 1)])
def test_axes_of_one_element(shape: tuple[int, ...]) -> None:
    """Their strides are those of a neighbour: the pieces tell which of them is cut."""
    target, axis = DeviceView.dense(ORIGIN, shape, "float32"), int(np.argmax(shape))
    every: list[tuple[slice, ...]] = [
        tuple(slice(row, row + 1) if each == axis else slice(None) for each in range(len(shape)))
        for row in range(shape[axis])
    ]
    found = cells([pieces(target, every, 0x200000), pieces(target, [()], 0x300000)])
    assert [cell[0].address for cell in found] == [ORIGIN + 4 * row for row in range(shape[axis])]


def test_terms_that_do_not_cover_the_target() -> None:
    target = DeviceView.dense(ORIGIN, (6, 4), "float32")
    whole = pieces(target, [()], 0x200000)
    with pytest.raises(DataError, match=r"term 1 hold 20 elements within the shape \[5, 4\].*shape \[6, 4\]"):
        cells([whole, pieces(target, [(slice(0, 5),)], 0x300000)])
    corners: list[tuple[slice, ...]] = [(slice(0, 1),), (slice(4, 6),)]
    with pytest.raises(DataError, match=r"term 1 hold 12 elements within the shape \[6, 4\]"):
        cells([whole, pieces(target, corners, 0x300000)])
    with pytest.raises(DataError, match=r"term 1 hold 0 elements"):
        cells([whole, []])


def test_targets_of_different_arrays() -> None:
    target, other = (
        DeviceView.dense(ORIGIN, (6, 4), "float32"),
        DeviceView.dense(ORIGIN, (6, 4), "float32", (1, 0)),
    )
    with pytest.raises(DataError, match=r"parts of one array; one has strides \(16, 4\)"):
        cells([[(target, target)], [(target, other)]])
    odd = DeviceView(ORIGIN + 2, (6, 4), (16, 4), "float32")
    with pytest.raises(DataError, match=r"not a part of the array with strides \(16, 4\) at 0x100000"):
        cells([[(target, target)], [(target, odd)]])
