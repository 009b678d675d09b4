"""Columns added up to an image, in TDL: the inverse of windows, as PyTorch and ONNX define it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..analyzer.indices.region import Shape


class FoldedAxis(NamedTuple):
    """A dimension of the image, and the windows along it."""

    extent: int
    """The extent of the image."""

    kernel: int
    """The extent of a window."""

    stride: int
    """The distance between windows."""

    dilation: int
    """The distance between elements of a window."""

    before: int
    """The padding before the image."""

    after: int
    """The padding after the image."""

    @property
    def windows(self) -> int:
        """Return how many windows there are."""
        room = self.extent + self.before + self.after - self.dilation * (self.kernel - 1) - 1
        return room // self.stride + 1


def windows_shape(batch: int, channels: int, axes: Sequence[FoldedAxis]) -> Shape:
    """Return the shape of the windows: batch, channels, the elements of a window, and the windows."""
    return (batch, channels, *(axis.kernel for axis in axes), *(axis.windows for axis in axes))


def folded(batch: int, channels: int, axes: Sequence[FoldedAxis]) -> str:
    """Return the image as a lambda of the windows `data`: each pixel is the sum of what all have of it."""
    pixels, inner = [f"x{d}" for d in range(len(axes))], [f"k{d}" for d in range(len(axes))]
    starts = [
        f"({x} + {axis.before} - {k} * {axis.dilation})"
        for x, k, axis in zip(pixels, inner, axes, strict=True)
    ]
    places = [f"{start} // {axis.stride}" for start, axis in zip(starts, axes, strict=True)]
    hits = [
        f"{start} % {axis.stride} == 0" for start, axis in zip(starts, axes, strict=True) if axis.stride > 1
    ]
    item = f"pad(data[{', '.join(['n', 'c', *inner, *places])}], 0)"
    item = f"where({' and '.join(hits)}, {item}, 0)" if hits else item
    summed = ", ".join(f"{k}={axis.kernel}" for k, axis in zip(inner, axes, strict=True))
    extents = [batch, channels, *(axis.extent for axis in axes)]
    binders = ", ".join(f"{name}={extent}" for name, extent in zip(["n", "c", *pixels], extents, strict=True))
    return f"lambda {binders}: Sum(lambda {summed}: {item})"
