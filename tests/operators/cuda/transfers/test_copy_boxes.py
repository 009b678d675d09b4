"""Boxes of memory: axes merged, words as wide as they can be, never more axes than a kernel takes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.transfers.copy_boxes import AXES, Box, boxes
from tofu.operators.cuda.transfers.transfers import _axis

from ..moving import generators


def one(*views: DeviceView) -> Box:
    (box,) = boxes(views)
    return box


def dense(
    address: int, shape: tuple[int, ...], type: str = "float32", order: tuple[int, ...] | None = None
) -> DeviceView:
    return DeviceView.dense(address, shape, type, order)


def test_dense_axes_merge() -> None:
    box = one(dense(0x1000, (4, 6, 8)), dense(0x2000, (4, 6, 8)))
    assert box == Box(16, (48,), (0x1000, 0x2000), ((16,), (16,)))
    assert box.contiguous


def test_only_what_merges_in_every_view_does() -> None:
    wide = dense(0x2000, (4, 12, 8))[:, 2:8]
    box = one(dense(0x1000, (4, 6, 8)), wide)
    assert box == Box(16, (4, 12), (0x1000, 0x2000 + 64), ((192, 16), (384, 16)))
    assert not box.contiguous


@pytest.mark.parametrize(
    ("target", "source", "length", "width"),
    [
        (0x1000, 0x2000, 8, 16),
        (0x1000, 0x2000, 6, 8),
        (0x1000, 0x2000, 5, 4),
        (0x1000, 0x2008, 8, 8),
        (0x1004, 0x2000, 8, 4),
        (0x1000, 0x2002, 8, 2),
        (0x1001, 0x2000, 8, 1),
    ],
)
def test_width(target: int, source: int, length: int, width: int) -> None:
    views = [dense(address, (3, 16))[:, :length] for address in (target, source)]
    box = one(*views)
    assert box.width == width
    assert box.count * width == 3 * length * 4


def test_axes_follow_the_target() -> None:
    shape = (3, 5, 7)
    box = one(dense(0x1000, shape, order=(2, 0, 1)), dense(0x2000, shape))
    assert box == Box(4, (7, 15), (0x1000, 0x2000), ((60, 4), (4, 28)))


def test_a_repeated_source_is_one_axis() -> None:
    assert one(dense(0, (3, 5)), DeviceView(0x2000, (3, 5), (0, 0), "float32")) == Box(
        4, (15,), (0, 0x2000), ((4,), (0,))
    )


def test_a_turned_target_is_written_forwards() -> None:
    target, source = dense(0x1000, (6,))[::-1,], dense(0x2000, (6,))
    assert one(target, source) == Box(4, (6,), (0x1000, 0x2014), ((4,), (-4,)))
    assert one(target, source[::-1,]).contiguous


def test_scalars_and_nothing() -> None:
    assert one(dense(0x1002, (), "float16"), dense(0x2000, (), "float16")).count == 1
    assert list(boxes([dense(0, (2, 0, 3))])) == []


def places(box: Box) -> set[tuple[int, ...]]:
    """Addresses of every word, in all views."""
    indices = product(*(range(length) for length in box.shape))
    return {
        tuple(
            start + sum(place * stride for place, stride in zip(index, strides, strict=True))
            for start, strides in zip(box.starts, box.strides, strict=True)
        )
        for index in indices
    }


def test_every_byte_is_in_one_box() -> None:
    for rng in generators(60):
        shape = tuple(rng.integers(1, 4, rng.integers(0, 8)).tolist())
        rank, views = len(shape), []
        for address in (0x1000, 0x90000):
            strides, step = [0] * rank, 2
            for axis in rng.permutation(rank).tolist():
                strides[axis], step = step, step * shape[axis] + 2 * int(rng.integers(0, 2))
            views.append(DeviceView(address, shape, tuple(strides), "int32" if step % 4 == 0 else "float16"))
        if len({view.type for view in views}) > 1:
            continue
        found = list(boxes(views))
        assert all(1 <= len(box.shape) <= AXES for box in found)
        bytes_of = [
            tuple(address + byte for address in word)
            for box in found
            for word in places(box)
            for byte in range(box.width)
        ]
        size = views[0].itemsize
        wanted = {
            tuple(
                view.address
                + byte
                + sum(place * stride for place, stride in zip(index, view.strides, strict=True))
                for view in views
            )
            for index in np.ndindex(shape)
            for byte in range(size)
        }
        assert len(bytes_of) == len(set(bytes_of))
        assert set(bytes_of) == wanted


def test_many_axes_are_cut_along_the_shortest() -> None:
    shape = (3, 2, 4, 3, 5, 3, 2)
    target = dense(0x1000, tuple(length + 1 for length in shape))[tuple(slice(length) for length in shape)]
    found = list(boxes([target]))
    assert len(found) == 2 * 3
    assert {len(box.shape) for box in found} == {AXES}
    assert sum(box.count * box.width for box in found) == target.nbytes


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 641, 1023, 65537, (1 << 30) + 1, (1 << 31) - 1])
def test_division_by_multiplication(length: int) -> None:
    """In what the device computes with: a product of 64 bits with a multiplier of 32."""
    whole, multiplier, shift = _axis(length)
    assert whole == length
    assert multiplier < 1 << 32
    rng = np.random.default_rng(length)
    last = (1 << 31) - 1
    near = [number * length + step for number in range(4) for step in (-1, 0, 1)]
    for position in (
        0,
        last,
        last // length * length,
        last // length * length - 1,
        *near,
        *rng.integers(0, last, 99).tolist(),
    ):
        if 0 <= position <= last:
            assert position * multiplier < 1 << 64
            assert position * multiplier >> shift == position // length
