"""Filters, outputs and gradients of convolution as the matrices that products need."""

from __future__ import annotations

import numpy as np

from ..kernel import Array
from ..workspace import Workspace
from .patches import Block, Sizes, Windows, flat


class Weights:
    """Filters `[filter, channel, *tap]` as matrices, in the order of gathered windows.

    `apart`: `[first tap, filter, side tap and channel]`; `joined`: `[filter, tap and channel]`. Whichever
    of filters and channels is denser in memory stays so, since copying along the other is slow.
    """

    def __init__(self, filters: Array, workspace: Workspace) -> None:
        count, _, taps, *side = filters.shape
        axes = range(3, 3 + len(side))
        if abs(filters.strides[0]) < abs(filters.strides[1]):
            self._source = filters.transpose(2, *axes, 1, 0)
            self._memory = workspace.array(self._source.shape, filters.dtype)
            self.apart: Array = self._memory.reshape(taps, -1, count).swapaxes(1, 2)
            self.joined: Array = self._memory.reshape(-1, count).T
        else:
            self._source = filters.transpose(0, 2, *axes, 1)
            self._memory = workspace.array(self._source.shape, filters.dtype)
            self.apart = self._memory.reshape(count, taps, -1).swapaxes(0, 1)
            self.joined = self._memory.reshape(count, -1)

    def refresh(self) -> None:
        """Read the filters anew."""
        np.copyto(self._memory, self._source)


class WeightTotal:
    """The gradient of filters: products added up in memory of their own, then stored."""

    def __init__(self, out: Array, shape: Sizes, axes: Sizes, workspace: Workspace) -> None:
        """`shape` is that of the matrices; `axes` says which axes of `out` they consist of, in order."""
        self._target = out.transpose(axes)
        self.matrices = workspace.array(shape, out.dtype)
        self.term = workspace.array(shape, out.dtype)

    def add_term(self) -> None:
        np.add(self.matrices, self.term, out=self.matrices)

    def store(self) -> None:
        np.copyto(self._target, self.matrices.reshape(self._target.shape))


class Images:
    """Blocks of `[image, filter, *place]` as matrices `[image, filter, place]`, copied where they must be."""

    def __init__(self, array: Array, windows: Windows, largest: Block, workspace: Workspace) -> None:
        self._array = array
        self._windows = windows
        self._flat = flat(array, windows.places)
        self._memory = workspace.array((0 if self._flat is not None else self._size(largest),), array.dtype)

    def matrices(self, block: Block) -> Array:
        """The block's matrices; where they are copies, their values are undefined."""
        if self._flat is not None:
            return block.of_flat(self._flat, self._windows.line)
        memory = self._memory[: self._size(block)]
        return memory.reshape(block.count, self._array.shape[1], -1)

    def load(self, block: Block) -> Array:
        """The block's matrices with the values of the array."""
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
