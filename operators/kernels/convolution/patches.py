"""Convolution windows as matrices, gathered block by block with channels first.

Neighbouring rows of images serve several windows: once the taps of all spatial dimensions but the
first are gathered, the matrix for a tap of the first is a part of what the lines make, some lines further
on, and is not copied. Lines whose rows differ modulo the stride lie apart, in *phases*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ....analyzer.indices.region import Interval, even_cuts
from ..complement import borders
from ..kernel import Array
from ..workspace import Workspace

BLOCK_ELEMENTS = 1 << 18
"""Elements gathered at a time: more leave the cache, fewer starve BLAS."""

WHOLE_BLOCKS = 4
"""An image is cut if it is larger than this many blocks: lines at a cut are gathered twice."""

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """Where windows lie: place `o` and tap `t` meet row `o * stride + t * dilate - before`, in each spatial
    dimension."""

    places: Sizes
    """The number of places."""

    taps: Sizes
    """The number of taps of a window."""

    stride: Sizes
    """The distance between the windows of neighbouring places, in rows."""

    dilate: Sizes
    """The distance between neighbouring taps of a window, in rows."""

    before: Sizes
    """How far the first window begins before the first row; negative if it begins after it."""

    @property
    def line(self) -> int:
        """Places that lie side by side: those of all dimensions but the first."""
        return prod(self.places[1:])

    @property
    def side_taps(self) -> int:
        """Taps of all dimensions but the first."""
        return prod(self.taps[1:])

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The rows modulo the stride, along the first dimension, that taps meet."""
        reaches = range(0, self.taps[0] * self.dilate[0], self.dilate[0])
        return tuple(sorted({reach % self.stride[0] for reach in reaches}))

    @property
    def overhang(self) -> int:
        """Lines beyond the number of places."""
        return (self.taps[0] - 1) * self.dilate[0] // self.stride[0]

    def first(self, tap: int) -> tuple[int, int]:
        """Return the phase of a tap of the first dimension, and the line where its matrix begins."""
        line, row = divmod(tap * self.dilate[0], self.stride[0])
        return self.phases.index(row), line

    def starts(self) -> Iterator[tuple[tuple[int, ...], Sizes]]:
        """List every phase and side tap: its index, and the row in each dimension that place 0 meets."""
        reaches = (range(0, n * d, d) for n, d in zip(self.taps[1:], self.dilate[1:], strict=True))
        for place in product(enumerate(self.phases), *map(enumerate, reaches)):
            index, shifts = zip(*place, strict=True)
            yield index, tuple(shift - before for shift, before in zip(shifts, self.before, strict=True))


@dataclass(frozen=True, slots=True)
class Block:
    """Some images and some of the first dimension's places."""

    images: Interval
    places: Interval

    @property
    def count(self) -> int:
        """How many images."""
        return self.images[1] - self.images[0]

    @property
    def lines(self) -> int:
        """How many of the first dimension's places."""
        return self.places[1] - self.places[0]

    def places_in(self, windows: Windows) -> int:
        """Return places of all dimensions, in all images."""
        return self.count * self.lines * windows.line

    def of(self, array: Array) -> Array:
        """Return the block's part of `[image, channel, *place]`."""
        return array[slice(*self.images), :, slice(*self.places)]

    def of_flat(self, array: Array, line: int) -> Array:
        """Return the block's part of `[image, channel, place]`, `line` places for each of the first
        dimension.
        """
        first, stop = self.places
        return array[slice(*self.images), :, first * line : stop * line]


class Patches:
    """The windows of images `[image, channel, *row]`. `largest` is a block as large as any."""

    def __init__(self, images: Array, windows: Windows, workspace: Workspace, share: float = 1) -> None:
        """Allow blocks of `share` times `BLOCK_ELEMENTS` elements, or of one line of places."""
        self.windows = windows
        self._images = images
        self._rows = images.shape[1] * windows.side_taps
        self._starts = list(windows.starts())
        self.plain = flat(images, windows.places) if self._is_plain() else None
        self.blocks = tuple(self._cut(int(share * BLOCK_ELEMENTS)))
        self.largest = max(self.blocks, key=lambda block: prod(self._shape(block)))
        need = 0 if self.plain is not None else prod(self._shape(self.largest))
        self._memory = workspace.array((need,), images.dtype)

    def gathered(self) -> Iterator[tuple[Block, list[Array]]]:
        """Yield each block and, for every tap of the first dimension, `[image, side tap and channel, place]`.

        Valid until the next block. Places outside the images are zero.
        """
        edge = None
        for block in self.blocks:
            if self.plain is not None:
                yield block, [block.of_flat(self.plain, self.windows.line)]
                continue
            shape = self._shape(block)
            memory = self._memory[: prod(shape)].reshape(shape)
            self._copy(block, memory, clear=(block.count, block.places) != edge)
            edge = (block.count, block.places)
            matrices = memory.reshape(block.count, len(self.windows.phases), self._rows, -1)
            yield block, [self._matrix(matrices, tap, block.lines) for tap in range(self.windows.taps[0])]

    def _matrix(self, matrices: Array, tap: int, lines: int) -> Array:
        phase, first = self.windows.first(tap)
        line = self.windows.line
        matrix: Array = matrices[:, phase, :, first * line : (first + lines) * line]
        return matrix

    def _copy(self, block: Block, memory: Array, clear: bool) -> None:
        """Fill a block. Cleared elements stay so from block to block if the edges are the same."""
        windows, images = self.windows, self._images[slice(*block.images)]
        whole = slice(None)
        for index, starts in self._starts:
            place: tuple[Any, ...] = (whole, *index)
            target: Array = memory[place]
            first = (starts[0] + block.places[0] * windows.stride[0], *starts[1:])
            inside, source = [], []
            for size, extent, start, stride in zip(
                target.shape[2:], images.shape[2:], first, windows.stride, strict=True
            ):
                lower, upper = _inside(size, extent, start, stride)
                inside.append(slice(lower, upper))
                row = start + lower * stride
                source.append(slice(row, row + max(upper - lower, 0) * stride, stride))
            if clear:
                for border in borders(target, (slice(0, len(target)), slice(0, target.shape[1]), *inside)):
                    border.fill(0)
            np.copyto(target[(whole, whole, *inside)], images[(whole, whole, *source)])

    def _is_plain(self) -> bool:
        """Return whether windows are single elements, so that the images themselves are the matrices."""
        windows = self.windows
        same = windows.places == self._images.shape[2:] and not any(windows.before)
        return same and prod(windows.taps) == 1 and set(windows.stride) == {1}

    def _shape(self, block: Block) -> Sizes:
        """`[image, phase, *side tap, channel, line, *place]`."""
        windows = self.windows
        taps = (len(windows.phases), *windows.taps[1:])
        lines = (block.lines + windows.overhang, *windows.places[1:])
        return (block.count, *taps, self._images.shape[1], *lines)

    def _cut(self, elements: int) -> Iterator[Block]:
        """Yield whole images, or lines of one that is too large; lines slowest, so that edges
        seldom change.
        """
        windows, images, places = self.windows, len(self._images), self.windows.places[0]
        line = len(windows.phases) * self._rows * windows.line
        image = line * (places + windows.overhang)
        whole = image <= WHOLE_BLOCKS * elements
        lines = places if whole else max(1, elements // line - windows.overhang)
        together = max(1, elements // image)
        for cut in even_cuts((0, places), lines):
            for part in even_cuts((0, images), together):
                yield Block(part, cut)


def flat(array: Array, places: Sizes) -> Array | None:
    """`[image, channel, place]` of the same memory, or None if places are not adjacent."""
    if not array[0, 0].flags.c_contiguous or array.strides[1] < prod(places) * array.itemsize:
        return None
    strides = (*array.strides[:2], array.itemsize)
    return np.lib.stride_tricks.as_strided(array, (*array.shape[:2], prod(places)), strides)


def _inside(size: int, extent: int, start: int, stride: int) -> Interval:
    """Return which of `size` places meet rows from 0 to `extent`, if the first meets row `start`."""
    lower = min(max(-(start // stride), 0), size)
    upper = min(max(-((start - extent) // stride), lower), size)
    return lower, upper
