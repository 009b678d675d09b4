"""First and last value inside a tensor of sums that move in steps, against trying all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from tofu.analyzer.input_regions import padded_strides
from tofu.analyzer.input_regions.padded_strides import Edge


def values(factors: tuple[int, ...], box: list[tuple[int, int]]) -> Iterator[int]:
    """Return the index at every point of a box."""
    for at in product(*(range(*interval) for interval in box)):
        yield sum(factor * place for factor, place in zip(factors, at, strict=True))


@pytest.mark.parametrize(
    ("factors", "lengths", "gaps"),
    [
        ((1,), (5,), False),
        ((2,), (1,), True),
        ((1, 3), (3, 2), False),
        ((1, 3), (2, 2), True),
        ((1, 3), (4, 2), False),
        ((1, 2, 6), (2, 3, 2), False),
        ((1, 2, 6), (2, 2, 2), True),
        ((1, 2, 7), (2, 3, 2), True),
        ((1, 1, 3), (2, 2, 9), False),
    ],
)
def test_gaps_by_the_lengths_of_the_variables(
    factors: tuple[int, ...], lengths: tuple[int, ...], gaps: bool
) -> None:
    positions = tuple(2 * axis + 1 for axis in range(len(factors)))
    shortest = [99] * (2 * len(factors))
    for position, length in zip(positions, lengths, strict=True):
        shortest[position] = length
    assert Edge(0, positions, factors).may_have_gaps(shortest) == gaps
    if min(lengths) > 1:
        found = sorted(set(values(factors, [(0, length) for length in lengths])))
        assert gaps == (found != list(range(found[0], found[-1] + 1)))


@pytest.mark.parametrize("factors", [(2,), (3,), (1, 4), (2, 3), (2, 2), (3, 7), (1, 2, 9)])
def test_bounds_inside_a_tensor_are_met(factors: tuple[int, ...]) -> None:
    """Boxes at once, of all lengths and places around a tensor of five elements."""
    rng, extent, count = np.random.default_rng(len(factors)), 5, 300
    lower = rng.integers(-4, 4, (count, len(factors)))
    boxes = np.stack([lower, lower + rng.integers(1, 5, lower.shape)], axis=-1)
    exact = [sorted(values(factors, box)) for box in boxes.tolist()]
    columns = np.zeros((count, 2, 2), np.int64)
    columns[:, 1] = [[found[0], found[-1] + 1] for found in exact]
    Edge(1, tuple(range(len(factors))), factors).settle(columns, boxes, np.array([0, extent]))
    assert not columns[:, 0].any()
    for (first, last), found in zip(columns[:, 1].tolist(), exact, strict=True):
        inside = [value for value in found if 0 <= value < extent]
        first, last = max(first, 0), min(last, extent)
        assert (first, last) == (inside[0], inside[-1] + 1) if inside else first >= last


def test_boxes_that_need_no_care_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the tensor, without gaps, or empty: nothing is tried."""
    tried: list[int] = []
    inside = Edge._inside

    def counted(edge: Edge, lower: np.ndarray, lengths: np.ndarray, extent: int) -> object:
        tried.append(len(lower))
        return inside(edge, lower, lengths, extent)

    monkeypatch.setattr(Edge, "_inside", counted)
    edge = Edge(0, (0, 1), (1, 3))

    def settled(first: tuple[int, int], second: tuple[int, int], extent: int) -> list[int]:
        boxes = np.array([[first, second]])
        columns = np.array([[[first[0] + 3 * second[0], first[1] + 3 * second[1] - 3]]])
        edge.settle(columns, boxes, np.array([extent]))
        return columns[0, 0].tolist()

    assert settled((0, 2), (0, 3), 8) == [0, 8]
    assert settled((0, 3), (-1, 3), 8) == [-3, 9]
    assert settled((0, 0), (-1, 3), 8) == [-3, 6]
    assert settled((0, 2), (-1, 0), 8) == [-3, -1]
    assert tried == []
    assert settled((0, 2), (-1, 1), 8) == [0, 2]
    assert settled((1, 2), (0, 3), 7) == [1, 5]
    assert tried == [1, 1]


def test_too_many_trials_leave_bounds_to_be_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = np.array([[(0, 4), (0, 2)]] * 3)
    columns = np.array([[(-2, 9)]] * 3)
    edge = Edge(0, (0, 1), (2, 3))
    monkeypatch.setattr(padded_strides, "MAX_TRIALS", 1)
    edge.settle(columns, boxes, np.array([5]))
    assert columns.tolist() == [[[-2, 9]]] * 3
    monkeypatch.setattr(padded_strides, "MAX_TRIALS", 2)
    edge.settle(columns, boxes, np.array([5]))
    assert columns.tolist() == [[[0, 5]]] * 3
