"""Convolution and its two gradients on arrays, in any number of spatial dimensions, one group.

Shapes: data `[image, channel, *row]`, filters `[filter, channel, *tap]`, output `[image, filter, *place]`.
All three share one relation between places, taps and rows (`Windows`). Padding may differ between
the sides. Each function takes its scratch from a workspace once and returns the run of an iteration.

Windows become matrix products *apart*, one for every image and tap of the first dimension, whose results
are added; or *joined*, with all taps and several images in one matrix, which must be written first. The
choice depends on the elements that either way touches besides those of the products.
"""

from __future__ import annotations

from itertools import product
from math import gcd, prod

from ..kernel import Array, Run, in_turn
from ..workspace import Workspace
from . import im2col, per_tap
from .patches import Sizes, Windows

COPY, ADD = 2, 3
"""Elements touched per element that is copied, or added to in place."""


def forward(data: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[n, f, o] = sum over c, t of data[n, c, row(o, t)] * filters[f, c, t]`, zero outside the data."""
    if 0 in data.shape[:2] or 0 in filters.shape or out.size == 0:
        return lambda: out.fill(0)
    places, count = prod(windows.places), len(filters)
    width = filters.shape[1] * prod(windows.taps)
    together = im2col.images_together(len(data), width * places)
    adding = ADD * (windows.taps[0] - 1) * count * places + width * count
    joining = COPY * (width + count) * places + width * count // together
    run = im2col.forward if joining < adding else per_tap.forward
    return run(data, filters, out, windows, workspace)


def data_gradient(gradient: Array, filters: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[n, c, row(o, t)] = sum over f, o, t of gradient[n, f, o] * filters[f, c, t]`.

    Rows that are equal modulo the stride meet the same taps. For them it is a convolution of stride one with
    reversed filters.
    """
    runs: list[Run] = []
    for phase in product(*map(range, windows.stride)):
        rows = tuple(slice(first, None, stride) for first, stride in zip(phase, windows.stride, strict=True))
        part = out[(slice(None), slice(None), *rows)]
        if part.size:
            workspace.rewind()
            runs.append(_phase_gradient(gradient, filters, part, windows, phase, workspace))

    return in_turn(runs)


def weight_gradient(data: Array, gradient: Array, out: Array, windows: Windows, workspace: Workspace) -> Run:
    """`out[f, c, t] = sum over n, o of gradient[n, f, o] * data[n, c, row(o, t)]`, zero outside the data."""
    if 0 in gradient.shape or 0 in data.shape[:2] or out.size == 0:
        return lambda: out.fill(0)
    places, count = prod(windows.places), gradient.shape[1]
    width = data.shape[1] * prod(windows.taps)
    together = im2col.images_together(len(data), width * places)
    adding = ADD * width * count
    joining = COPY * (width + count) * places + ADD * width * count // together
    run = im2col.weight_gradient if joining < adding else per_tap.weight_gradient
    return run(data, gradient, out, windows, workspace)


def _phase_gradient(
    gradient: Array, filters: Array, part: Array, windows: Windows, phase: Sizes, workspace: Workspace
) -> Run:
    """`part` are the rows `phase`, `phase + stride`, ... of the data's gradient."""
    taps, dilate, before = [], [], []
    for row, count, stride, reach, pad in zip(
        phase, windows.taps, windows.stride, windows.dilate, windows.before, strict=True
    ):
        first = next((tap for tap in range(count) if (tap * reach - pad - row) % stride == 0), count)
        step = stride // gcd(stride, reach)
        met = range(first, count, step)
        taps.append(slice(first, count, step))
        dilate.append(reach * step // stride)
        before.append((first * reach - pad - row) // stride + (len(met) - 1) * dilate[-1])
    whole = (slice(None), slice(None))
    chosen = filters.swapaxes(0, 1)[(*whole, *taps)]
    turned = chosen[(*whole, *(slice(None, None, -1),) * len(taps))]
    sizes = turned.shape[2:]
    rows = Windows(part.shape[2:], sizes, (1,) * len(taps), tuple(dilate), tuple(before))
    return forward(gradient, turned, part, rows, workspace)
