"""Convolution windows as rows of a matrix (im2col), channels last.

A window of an image whose channels lie innermost is a few long runs of memory, so gathering it costs
little, and its rows times the filters is one matrix product at nearly the speed of BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..borders import borders
from ..kernel import Array
from ..workspace import Workspace

BLOCK_ELEMENTS = 1 << 19
"""Elements of the matrix of gathered windows: larger ones leave the cache, smaller ones starve BLAS."""

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows lie: output place `o` and tap `t` meet row `o * stride + t * dilate - before`.

    One number per spatial dimension; `before` may be negative. `places` and `taps` are counts.
    """

    places: Sizes
    taps: Sizes
    stride: Sizes
    dilate: Sizes
    before: Sizes

    @property
    def span(self) -> Sizes:
        """Rows from the first that a window touches to the last."""
        return tuple(
            (places - 1) * stride + (taps - 1) * dilate + 1
            for places, taps, stride, dilate in zip(
                self.places, self.taps, self.stride, self.dilate, strict=True
            )
        )

    def inside(self, rows: Sizes) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the span that an image with `rows` rows has: slices of the span and of the image."""
        of_span, of_image = [], []
        for span, before, count in zip(self.span, self.before, rows, strict=True):
            first, last = max(before, 0), max(min(before + count, span), max(before, 0))
            of_span.append(slice(first, last))
            of_image.append(slice(first - before, last - before))
        return tuple(of_span), tuple(of_image)


class Patches:
    """The windows of images `[image, channel, *rows]`, gathered block by block."""

    def __init__(self, images: Array, windows: Windows, workspace: Workspace) -> None:
        self.windows = windows
        self.count, self.channels = images.shape[:2]
        self.padded = workspace.array((self.count, *windows.span, self.channels), images.dtype)
        of_span, of_image = windows.inside(images.shape[2:])
        inside = (slice(0, self.count), *of_span)
        self._target = self.padded[inside]
        self._borders = borders(self.padded, inside)
        self._source = np.moveaxis(images[(slice(None), slice(None), *of_image)], 1, -1)
        self._view = window_view(self.padded, windows)
        self._width = prod(windows.taps) * self.channels
        self._blocks = list(row_blocks(self.count, windows.places, self._width))
        rows = max(block.rows for block in self._blocks)
        self._memory = None if self._direct else workspace.array((rows * self._width,), images.dtype)

    @property
    def _direct(self) -> bool:
        """Whether every block's windows already are a matrix in memory."""
        return all(self._view[block.index].flags.c_contiguous for block in self._blocks)

    @property
    def largest(self) -> int:
        """Rows of the largest block."""
        return max(block.rows for block in self._blocks)

    def refresh(self) -> None:
        """Read the images anew, with zeros around them."""
        for border in self._borders:
            border.fill(0)
        np.copyto(self._target, self._source)

    def blocks(self) -> Iterator[tuple[Block, Array]]:
        """Each block and its matrix `[image and place, tap and channel]`, valid until the next one."""
        for block in self._blocks:
            source = self._view[block.index]
            if self._memory is None:
                yield block, source.reshape(block.rows, self._width)
                continue
            matrix = self._memory[: block.rows * self._width]
            np.copyto(matrix.reshape(source.shape), source)
            yield block, matrix.reshape(block.rows, self._width)


@dataclass(frozen=True, slots=True)
class Block:
    """Some images and some of their first spatial dimension's places: `index` into `[image, *place]`."""

    index: tuple[slice, slice]
    shape: Sizes

    @property
    def rows(self) -> int:
        return prod(self.shape)


def row_blocks(images: int, places: Sizes, width: int) -> Iterator[Block]:
    """Blocks of at most `BLOCK_ELEMENTS` elements, `width` per place, or of one row of places."""
    first, rest = places[0], places[1:]
    row = prod(rest) * width
    many = max(1, min(images, BLOCK_ELEMENTS // (first * row)))
    rows = first if many > 1 else max(1, min(first, BLOCK_ELEMENTS // row))
    for image in range(0, images, many):
        for place in range(0, first, rows):
            stop, last = min(image + many, images), min(place + rows, first)
            yield Block((slice(image, stop), slice(place, last)), (stop - image, last - place, *rest))


def window_view(padded: Array, windows: Windows) -> Array:
    """A view `[image, *place, *tap, channel]` of channels-last images that hold the whole span."""
    image, *rows, channel = padded.strides
    steps = [size * step for size, step in zip(rows, windows.stride, strict=True)]
    reaches = [size * step for size, step in zip(rows, windows.dilate, strict=True)]
    return np.lib.stride_tricks.as_strided(
        padded,
        (padded.shape[0], *windows.places, *windows.taps, padded.shape[-1]),
        (image, *steps, *reaches, channel),
    )
