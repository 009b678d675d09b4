"""Filters, outputs and gradients of convolution as the matrices that products need."""

from __future__ import annotations

import numpy as np

from ..kernel import Array
from ..strided import bound
from ..workspace import Workspace
from .patches import Block, Sizes, Windows, flat


class Weights:
    """Filters `[filter, channel, *tap]` as `matrices`, copied by `refresh` unless they lie so already.

    The denser one of filters and channels in memory stays so: copying along the other is slow.
    """

    def __init__(self, source: Array, memory: Array | None, matrices: Array) -> None:
        self._source = source
        self._memory = memory
        self.matrices = matrices

    @classmethod
    def apart(cls, filters: Array, workspace: Workspace) -> Weights:
        """`[first tap, filter, side tap and channel]`."""
        count, _, taps = filters.shape[:3]
        side = range(3, filters.ndim)
        if _filters_inside(filters):
            source = filters.transpose(2, *side, 1, 0)
            memory = workspace.array(source.shape, filters.dtype)
            return cls(source, memory, memory.reshape(taps, -1, count).swapaxes(1, 2))
        source = filters.transpose(2, 0, *side, 1)
        memory = workspace.array(source.shape, filters.dtype)
        return cls(source, memory, memory.reshape(taps, count, -1))

    @classmethod
    def joined(cls, filters: Array, workspace: Workspace) -> Weights:
        """`[filter, channel and tap]`."""
        if (matrix := _as_rows(filters)) is not None:
            return cls(filters, None, matrix)
        if _filters_inside(filters):
            source = np.moveaxis(filters, 0, -1)
            memory = workspace.array(source.shape, filters.dtype)
            return cls(source, memory, memory.reshape(-1, len(filters)).T)
        memory = workspace.array(filters.shape, filters.dtype)
        return cls(filters, memory, memory.reshape(len(filters), -1))

    def refresh(self) -> None:
        """Read the filters again."""
        if self._memory is not None:
            np.copyto(self._memory, self._source)


class WeightTotal:
    """The gradient of filters `[filter, channel, *tap]`: a sum of products, in separate memory or in `out`.

    `target` is where the next product belongs; `add` it when it is there, and `store` the sum of all.
    """

    def __init__(self, out: Array, total: Array | None, shape: Sizes, workspace: Workspace) -> None:
        """`out` has its axes in the order of the products, which have `shape`; `total` is its own memory."""
        self._out = out
        self._stored = total is not None
        self._total = workspace.array(shape, out.dtype) if total is None else total
        self._term = workspace.array(shape, out.dtype)
        self._sum = bound(np.add, (self._total, self._term), self._total, workspace)
        self.target = self._total

    @classmethod
    def apart(cls, out: Array, workspace: Workspace) -> WeightTotal:
        """Return the sums of products `[first tap, filter, side tap and channel]`."""
        ordered = out.transpose(2, 0, *range(3, out.ndim), 1)
        return cls(ordered, None, (*ordered.shape[:2], ordered[0, 0].size), workspace)

    @classmethod
    def joined(cls, out: Array, workspace: Workspace) -> WeightTotal:
        """Return the sums of products `[filter, channel and tap]`."""
        return cls(out, _as_rows(out), (len(out), out[0].size), workspace)

    def restart(self) -> None:
        """Begin a sum."""
        self.target = self._total

    def add(self) -> None:
        """Add the product that was written to `target`."""
        if self.target is self._term:
            self._sum()
        self.target = self._term

    def store(self) -> None:
        """Write the sum to the output."""
        if not self._stored:
            np.copyto(self._out, self._total.reshape(self._out.shape))


class Images:
    """Blocks of `[image, filter, *place]` as matrices `[image, filter, place]`, copied if they must be."""

    def __init__(self, array: Array, windows: Windows, largest: Block, workspace: Workspace) -> None:
        self._array = array
        self._windows = windows
        self._flat = flat(array, windows.places)
        self._memory = workspace.array((0 if self._flat is not None else self._size(largest),), array.dtype)

    def matrices(self, block: Block) -> Array:
        """Return the block's matrices; if they are copies, their values are undefined."""
        if self._flat is not None:
            return block.of_flat(self._flat, self._windows.line)
        memory = self._memory[: self._size(block)]
        return memory.reshape(block.count, self._array.shape[1], -1)

    def load(self, block: Block) -> Array:
        """Return the block's matrices with the values of the array."""
        matrices = self.matrices(block)
        if self._flat is None:
            source = block.of(self._array)
            np.copyto(matrices.reshape(source.shape), source)
        return matrices

    def store(self, block: Block, matrices: Array) -> None:
        """Write back what was computed in the block's matrices."""
        if self._flat is None:
            target = block.of(self._array)
            np.copyto(target, matrices.reshape(target.shape))

    def _size(self, block: Block) -> int:
        filters: int = self._array.shape[1]
        return filters * block.places_in(self._windows)


def _filters_inside(filters: Array) -> bool:
    return abs(filters.strides[0]) < abs(filters.strides[1])


def _as_rows(filters: Array) -> Array | None:
    """`[filter, channel and tap]` of the same memory, or None if a filter is not in one piece."""
    if not filters[0].flags.c_contiguous or filters.strides[0] < filters[0].nbytes:
        return None
    shape, strides = (len(filters), filters[0].size), (filters.strides[0], filters.itemsize)
    return np.lib.stride_tricks.as_strided(filters, shape, strides)
