"""Gradients of pooling over windows, on arrays `[image, channel, *row]` and `[image, channel, *place]`.

Every tap of the window meets a regular grid of rows, so a gradient is a few strided additions per tap.
Images are taken a few at a time, so that what the taps share stays in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from ..derive.select import select, spread_bits
from ..kernel import Array
from .patches import Windows

Run = Callable[[], None]
Slices = tuple[slice, ...]

BLOCK_ELEMENTS = 1 << 16
"""Elements of the output that are computed at a time."""


def maximum_gradient(data: Array, output: Array, gradient: Array, out: Array, windows: Windows) -> Run:
    """Every place's gradient goes to the rows of its window that hold the maximum."""
    steps: list[tuple[Array, Array, Array, Array, Array, Array, Array]] = []
    blocks = list(_blocks(out))
    places = output[blocks[0]] if blocks else output
    truth = np.empty(places.shape, np.bool_)
    mask = np.empty(places.shape, np.dtype(f"i{out.itemsize}"))
    part = np.empty(places.shape, out.dtype)
    for block in blocks:
        for rows, at in _taps(windows, out.shape[2:]):
            shape = output[(*block, *at)].shape
            corner = tuple(slice(length) for length in shape)
            steps.append(
                (
                    data[(*block, *rows)],
                    output[(*block, *at)],
                    gradient[(*block, *at)],
                    out[(*block, *rows)],
                    truth[corner],
                    mask[corner],
                    part[corner],
                )
            )

    def run() -> None:
        out.fill(0)
        for values, maxima, heads, target, equal, bits, chosen in steps:
            np.equal(values, maxima, out=equal)
            spread_bits(equal, out=bits)
            select(bits, heads, 0, out=chosen)
            np.add(target, chosen, out=target)

    return run


def sum_gradient(gradient: Array, out: Array, windows: Windows, divisor: int) -> Run:
    """Every place's gradient, divided, goes to all rows of its window."""
    shares = np.empty(gradient.shape, gradient.dtype)
    steps = [
        (out[(*block, *rows)], shares[(*block, *at)])
        for block in _blocks(out)
        for rows, at in _taps(windows, out.shape[2:])
    ]

    def run() -> None:
        out.fill(0)
        np.divide(gradient, divisor, out=shares)
        for target, share in steps:
            np.add(target, share, out=target)

    return run


def _blocks(out: Array) -> Iterator[tuple[slice]]:
    """A few images at a time."""
    if out.size == 0:
        return
    many = max(1, BLOCK_ELEMENTS * len(out) // out.size)
    for first in range(0, len(out), many):
        yield (slice(first, min(first + many, len(out))),)


def _taps(windows: Windows, rows: tuple[int, ...]) -> Iterator[tuple[Slices, Slices]]:
    """For every tap that meets rows: those rows, behind image and channel, and the places that meet them."""
    dimensions = zip(
        rows, windows.places, windows.taps, windows.stride, windows.dilate, windows.before, strict=True
    )
    choices = []
    for count, places, taps, stride, dilate, before in dimensions:
        met = []
        for tap in range(taps):
            shift = tap * dilate - before
            first = max(0, -(shift // stride))
            last = min(places, (count - 1 - shift) // stride + 1)
            if first < last:
                start = first * stride + shift
                met.append(
                    (slice(start, start + (last - first - 1) * stride + 1, stride), slice(first, last))
                )
        choices.append(met)
    for chosen in product(*choices):
        yield (
            (slice(None), *(rows for rows, _ in chosen)),
            (slice(None), *(at for _, at in chosen)),
        )
