"""Convolution as one matrix product for all taps and several images."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..kernel import Array, Run
from ..workspace import Workspace
from . import patches
from .matrices import Weights, WeightTotal
from .patches import Block, Patches, Windows

JOINED_BLOCKS = 4
"""The matrix of all taps may have the size of this many blocks: larger products repay leaving the cache."""


def images_together(images: int, elements: int) -> int:
    """Return how many images are joined, given the elements of each."""
    return min(images, max(1, JOINED_BLOCKS * patches.BLOCK_ELEMENTS // elements))


def forward(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """Return the convolution; nothing is empty."""
    columns = _Columns(data, windows, workspace)
    weights = Weights.joined(filters, workspace)
    results = workspace.array((columns.most * len(filters),), out.dtype)

    def run() -> None:
        weights.refresh()
        for block, matrix in columns.blocks():
            result = results[: len(filters) * matrix.shape[1]].reshape(len(filters), -1)
            np.matmul(weights.matrices, matrix, out=result)
            target = block.of(out).swapaxes(0, 1)
            np.copyto(target, result.reshape(target.shape))

    return run


def weight_gradient(data: Array, gradient: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """Return the gradient of the filters; nothing is empty."""
    columns = _Columns(data, windows, workspace)
    heads = workspace.array((columns.most * len(out),), gradient.dtype)
    total = WeightTotal.joined(out, workspace)

    def run() -> None:
        total.restart()
        for block, matrix in columns.blocks():
            source = block.of(gradient).swapaxes(0, 1)
            head = heads[: source.size].reshape(source.shape)
            np.copyto(head, source)
            np.matmul(head.reshape(len(out), -1), matrix.T, out=total.target)
            total.add()
        total.store()

    return run


class _Columns:
    """The windows of a block as one matrix `[channel and tap, image and place]`; `most` places at a time."""

    def __init__(self, data: Array, windows: Windows, workspace: Workspace) -> None:
        share = JOINED_BLOCKS * len(windows.phases) / windows.taps[0]
        self._patches = Patches(data, windows, workspace, share)
        self._taps = windows.taps[0], windows.side_taps
        self._rows = data.shape[1] * prod(windows.taps)
        self.most = self._patches.largest.places_in(windows)
        self._memory = workspace.array((self._rows * self.most,), data.dtype)

    def blocks(self) -> Iterator[tuple[Block, Array]]:
        """Yield each block and its matrix, valid until the next one."""
        for block, taps in self._patches.gathered():
            count, _, places = taps[0].shape
            matrix = self._memory[: self._rows * count * places]
            stacked = matrix.reshape(-1, *self._taps, count, places)
            for tap, gathered in enumerate(taps):
                source = gathered.reshape(count, self._taps[1], -1, places)
                np.copyto(stacked[:, tap], source.transpose(2, 1, 0, 3))
            yield block, matrix.reshape(self._rows, count * places)
