"""Convolution and its two gradients on arrays, in any number of spatial dimensions, one group.

Shapes: data `[image, channel, *row]`, filters `[filter, channel, *tap]`, output `[image, filter, *place]`.
All three share one relation between places, taps and rows (`Windows`), and padding need not be alike on
both sides. Each function takes its scratch from a workspace once and returns what runs every iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from ..kernel import Array
from ..workspace import Workspace
from .patches import Patches, Windows, row_blocks, window_view

Run = Callable[[], None]


def forward(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[n, f, o] = sum over c, t of data[n, c, row(o, t)] * filters[f, c, t]`, zero outside the data."""
    if 0 in data.shape[:2] or 0 in filters.shape or out.size == 0:
        return lambda: out.fill(0)
    if (direct := _pointwise(data, filters, out, windows, workspace)) is not None:
        return direct
    patches = Patches(data, windows, workspace)
    source = np.moveaxis(filters, 1, -1)
    matrix = workspace.array(source.shape, filters.dtype)
    columns = matrix.reshape(len(filters), -1).T
    result = workspace.array((patches.largest, len(filters)), out.dtype)
    target = np.moveaxis(out, 1, -1)

    def run() -> None:
        patches.refresh()
        np.copyto(matrix, source)
        for block, rows in patches.blocks():
            product = np.matmul(rows, columns, out=result[: block.rows])
            np.copyto(target[block.index], product.reshape(*block.shape, -1))

    return run


def data_gradient(gradient: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[n, c, row(o, t)] = sum over f, o, t of gradient[n, f, o] * filters[f, c, t]`.

    Stride one is a convolution with turned filters; any other adds each window to the rows it came from.
    """
    if 0 in gradient.shape or 0 in filters.shape or out.size == 0:
        return lambda: out.fill(0)
    if all(stride == 1 for stride in windows.stride):
        turned = filters.swapaxes(0, 1)[
            (slice(None), slice(None), *(slice(None, None, -1),) * (out.ndim - 2))
        ]
        before = tuple(
            (taps - 1) * dilate - before
            for taps, dilate, before in zip(windows.taps, windows.dilate, windows.before, strict=True)
        )
        return forward(
            gradient, turned, out, replace(windows, places=out.shape[2:], before=before), workspace
        )
    return _scatter(gradient, filters, out, windows, workspace)


def weight_gradient(data: Array, gradient: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[f, c, t] = sum over n, o of gradient[n, f, o] * data[n, c, row(o, t)]`, zero outside the data."""
    if 0 in gradient.shape or 0 in data.shape[:2] or out.size == 0:
        return lambda: out.fill(0)
    patches = Patches(data, windows, workspace)
    filters = gradient.shape[1]
    source = np.moveaxis(gradient, 1, -1)
    places = workspace.array((patches.largest, filters), gradient.dtype)
    total = workspace.array((filters, *windows.taps, data.shape[1]), out.dtype)
    matrix = total.reshape(filters, -1)
    part = workspace.array(matrix.shape, matrix.dtype)
    target = np.moveaxis(out, 1, -1)

    def run() -> None:
        patches.refresh()
        for number, (block, rows) in enumerate(patches.blocks()):
            heads = places[: block.rows]
            np.copyto(heads.reshape(*block.shape, filters), source[block.index])
            np.matmul(heads.T, rows, out=part if number else matrix)
            if number:
                np.add(matrix, part, out=matrix)
        np.copyto(target, total)

    return run


def _pointwise(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run | None:
    """One tap, stride one, no padding: a matrix product per image, without any copy; else None."""
    places = prod(windows.places)
    plain = prod(windows.taps) == 1 and set(windows.stride) == {1} and data.shape[2:] == out.shape[2:]
    if not plain or any(windows.before):
        return None
    images, results = _flat(data, places), _flat(out, places)
    if images is None or results is None:
        return None
    matrix = filters.reshape(filters.shape[:2])
    columns = workspace.array(matrix.shape, filters.dtype)

    def run() -> None:
        np.copyto(columns, matrix)
        np.matmul(columns, images, out=results)

    return run


def _flat(array: Array, places: int) -> Array | None:
    """`[image, channel, place]` of the same memory, or None where the places are not adjacent."""
    if array[0, 0].flags.c_contiguous and array.strides[1] == places * array.itemsize:
        strides = (*array.strides[:2], array.itemsize)
        return np.lib.stride_tricks.as_strided(array, (*array.shape[:2], places), strides)
    return None


def _scatter(gradient: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    channels = out.shape[1]
    width = prod(windows.taps) * channels
    blocks = list(row_blocks(len(gradient), windows.places, width))
    largest = max(block.rows for block in blocks)
    heads = workspace.array((largest, gradient.shape[1]), gradient.dtype)
    rows = workspace.array((largest, width), out.dtype)
    matrix = workspace.array((gradient.shape[1], *windows.taps, channels), filters.dtype)
    padded = workspace.array((len(gradient), *windows.span, channels), out.dtype)
    view = window_view(padded, windows)
    of_span, of_image = windows.inside(out.shape[2:])
    target = np.moveaxis(out[(slice(None), slice(None), *of_image)], 1, -1)
    covered = target.size == out.size
    places, weights = np.moveaxis(gradient, 1, -1), np.moveaxis(filters, 1, -1)
    middle = (slice(None),) * len(windows.places)

    def run() -> None:
        np.copyto(matrix, weights)
        padded.fill(0)
        for block in blocks:
            lines = heads[: block.rows]
            np.copyto(lines.reshape(*block.shape, -1), places[block.index])
            product = np.matmul(lines, matrix.reshape(len(matrix), -1), out=rows[: block.rows])
            windowed, target_block = product.reshape(*block.shape, *windows.taps, channels), view[block.index]
            for tap in np.ndindex(windows.taps):
                part = target_block[(slice(None), *middle, *tap)]
                np.add(part, windowed[(slice(None), *middle, *tap)], out=part)
        if not covered:
            out.fill(0)
        np.copyto(target, padded[(slice(None), *of_span)])

    return run
