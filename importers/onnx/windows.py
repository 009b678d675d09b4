"""ONNX's pooling with dilations: a description reads the elements of a window, which lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from .compose import described
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


def averaged(
    total: OnnxOperand, windows: Sequence[AxisWindows], lows: Sequence[int], highs: Sequence[int]
) -> OnnxOperand:
    """Divide sums of windows by the number of their elements in the box from `lows` to `highs`."""
    counts = [each.inside(*ends) for each, *ends in zip(windows, lows, highs, strict=True)]
    return binary(DIV, total, constant(reduce(np.multiply.outer, counts)))
