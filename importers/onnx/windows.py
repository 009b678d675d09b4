"""ONNX's windows as descriptions: pooling with dilations, the places of maxima, and writing them back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from .compose import described, reshape
from .elementwise import DIV, binary
from .node import OnnxNode
from .operand import Array, OnnxOperand, constant


class AxisWindows(NamedTuple):
    """The windows along one dimension."""

    number: int
    """How many there are."""

    size: int
    """The number of elements that a window reads."""

    stride: int
    """The distance between the starts of windows."""

    dilation: int
    """The distance between elements of a window."""

    before: int
    """The number of elements of padding before the tensor."""

    def place(self, window: str, element: str) -> str:
        """Return the index that an element of a window reads."""
        return f"{window} * {self.stride} + {element} * {self.dilation} - {self.before}"

    def inside(self, low: int, high: int) -> Array:
        """Return how many elements of each window lie in an interval."""
        starts = np.arange(self.number)[:, None] * self.stride - self.before
        places = starts + np.arange(self.size) * self.dilation
        return np.asarray(((places >= low) & (places < high)).sum(1))


def windows_of(
    node: OnnxNode, kernel: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> list[AxisWindows]:
    """Return the windows along each dimension of space. None begins behind the tensor."""
    rank = len(kernel)
    strides = node.integers("strides", None, [1] * rank)
    dilations = node.integers("dilations", None, [1] * rank)
    found = []
    for d, extent in enumerate(node[0].shape[2:]):
        room = extent + before[d] + after[d] - dilations[d] * (kernel[d] - 1) - 1
        count = (-(-room // strides[d]) if node.integer("ceil_mode", 0) else room // strides[d]) + 1
        count = min(count, -(-(extent + before[d]) // strides[d]))
        found.append(AxisWindows(count, kernel[d], strides[d], dilations[d], before[d]))
    return found


def dilated(data: OnnxOperand, windows: Sequence[AxisWindows], reducer: str, padding: str) -> OnnxOperand:
    """Reduce each window of the data."""
    outputs = [f"i{d}={each.number}" for d, each in enumerate(windows)]
    elements = [f"k{d}={each.size}" for d, each in enumerate(windows)]
    places = [each.place(f"i{d}", f"k{d}") for d, each in enumerate(windows)]
    read = f"pad(a[n, c, {', '.join(places)}], {padding})"
    body = f"{reducer}(lambda {', '.join(elements)}: {read})"
    return described(f"def windows(a):\n    return lambda n, c, {', '.join(outputs)}: {body}", data)


def places(
    data: OnnxOperand, greatest: OnnxOperand, windows: Sequence[AxisWindows], columns_first: bool
) -> OnnxOperand:
    """Return where the greatest elements are in the flattened tensor, the first of equal ones.

    In the dimensions of space they count by rows, or by columns if these come first.
    """
    space, axes = data.shape[2:], range(len(windows))
    at = [each.place(f"i{d}", f"k{d}") for d, each in enumerate(windows)]
    flat = "0"
    for d in reversed(axes) if columns_first else axes:
        flat = f"({flat}) * {space[d]} + {at[d]}"
    own = f"(n * {data.shape[1]} + c) * {prod(space)}"
    inside = " and ".join(
        f"{place} >= 0 and {place} < {extent}" for place, extent in zip(at, space, strict=True)
    )
    hit = f"{inside} and pad(a[n, c, {', '.join(at)}], -inf) == b[n, c, {', '.join(f'i{d}' for d in axes)}]"
    outputs = ", ".join(f"i{d}={each.number}" for d, each in enumerate(windows))
    elements = ", ".join(f"k{d}={each.size}" for d, each in enumerate(windows))
    body = f"{own} + Min(lambda {elements}: where({hit}, {flat}, {prod(space) - 1}))"
    found = described(f"def places(a, b):\n    return lambda n, c, {outputs}: {body}", data, greatest)
    return found.of_type(np.dtype(np.int64))


def written_back(data: OnnxOperand, index: OnnxOperand, space: Sequence[int]) -> OnnxOperand:
    """Write maxima to their places in the flattened tensor, each within its own channel.

    A place that is written twice has the mean of what is written.
    """
    rows, channels, *counts = data.shape
    size = prod(space)
    flat = [reshape(each, (rows, channels, prod(counts))) for each in (data, index)]
    outer = f"lambda n={rows}, c={channels}, i={size}"
    hit = f"b[n, c, k] - (n * {channels} + c) * {size} == i"
    found = described(
        "def max_unpool(a, b):\n"
        f"    count = {outer}: Sum(lambda k: where({hit}, 1, 0))\n"
        f"    total = {outer}: Sum(lambda k: where({hit}, a[n, c, k], 0))\n"
        f"    return {outer}: total[n, c, i] / maximum(count[n, c, i], 1)",
        *flat,
    )
    return reshape(found, (rows, channels, *space))


def averaged(
    total: OnnxOperand, windows: Sequence[AxisWindows], lows: Sequence[int], highs: Sequence[int]
) -> OnnxOperand:
    """Divide sums of windows by the number of their elements in the box from `lows` to `highs`."""
    counts = [each.inside(*ends) for each, *ends in zip(windows, lows, highs, strict=True)]
    return binary(DIV, total, constant(reduce(np.multiply.outer, counts)))
