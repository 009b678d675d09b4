"""Regions: boxes of half-open integer intervals, singly as tuples, in bulk as arrays.

A bulk of `n` boxes with `d` dimensions is an int64 array `[n, d, 2]`; `[..., 0]` are the lower and
`[..., 1]` the upper bounds. Boxes are empty if any upper bound is at or below its lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

Interval = tuple[int, int]
Region = tuple[Interval, ...]
Shape = tuple[int, ...]
Boxes = npt.NDArray[np.int64]
FAR = np.iinfo(np.int64).max
"""A position beyond that of every element."""


def whole(shape: Sequence[int]) -> Boxes:
    """Return the box `[dimension, 2]` that covers a tensor of this shape."""
    box = np.zeros((len(shape), 2), np.int64)
    box[:, 1] = shape
    return box


def to_region(box: Boxes) -> Region:
    """Return one box `[dimension, 2]` as a tuple of intervals."""
    return tuple([(lower, upper) for lower, upper in box.tolist()])


def to_regions(boxes: Boxes) -> list[Region]:
    """Return boxes `[n, dimension, 2]` as tuples of intervals."""
    return [tuple([(lower, upper) for lower, upper in box]) for box in boxes.tolist()]


def flattened(boxes: Boxes) -> Boxes:
    """Return lists of boxes one after the other: `[a, b, d, 2] -> [a * b, d, 2]`; `d` may be zero."""
    return boxes.reshape(boxes.shape[0] * boxes.shape[1], *boxes.shape[2:])


def volume(boxes: Boxes) -> npt.NDArray[np.int64]:
    """Return elements in each box: `[..., d, 2] -> [...]`."""
    lengths: npt.NDArray[np.int64] = np.maximum(boxes[..., 1] - boxes[..., 0], 0).prod(axis=-1)
    return lengths


def intersect(a: Boxes, b: Boxes) -> Boxes:
    """Return intersections of boxes, broadcasting over leading axes."""
    lower = np.maximum(a[..., 0], b[..., 0])
    upper = np.minimum(a[..., 1], b[..., 1])
    return np.stack((lower, np.maximum(lower, upper)), axis=-1)


def split(box: Boxes, axes: Sequence[int | None], factors: Sequence[int]) -> Boxes:
    """Split one box step by step: `[d, 2] -> [workers, d, 2]`.

    Step `i` cuts every box of the step before into `factors[i]` parts along `axes[i]`, part `w` starting
    at `floor(w * length / k)`; an axis of None repeats the box instead. The first step is the most
    significant digit of a worker's number.
    """
    levels: dict[int, list[tuple[int, int]]] = {}
    workers = inner = prod(factors)
    for axis, factor in zip(axes, factors, strict=True):
        inner //= factor
        if axis is not None:
            levels.setdefault(axis, []).append((inner, factor))
    boxes = np.empty((workers, *box.shape), np.int64)
    boxes[:] = box
    bounds = box.tolist() if levels else []
    for axis, of_axis in levels.items():
        boxes[:, axis] = _cuts(*bounds[axis], workers, tuple(of_axis))
    return boxes


@lru_cache(maxsize=4096)
def _cuts(lower: int, upper: int, workers: int, levels: tuple[tuple[int, int], ...]) -> Boxes:
    """Return the interval of each worker: `[workers, 2]`.

    A level is how far apart workers are whose parts are neighbours, and the number of its parts.
    """
    number = np.arange(workers)
    first, last = np.full(workers, lower), np.full(workers, upper)
    for apart, factor in levels:
        part, length = number // apart % factor, last - first
        first, last = first + part * length // factor, first + (part + 1) * length // factor
    return np.stack((first, last), axis=-1)


def even_cuts(interval: Interval, size: int) -> list[Interval]:
    """Return intervals of about the same length, at most `size`, that make up one."""
    first, total = interval[0], max(interval[1] - interval[0], 0)
    count = -(-total // size)
    return [(first + total * part // count, first + total * (part + 1) // count) for part in range(count)]


def hull(a: Boxes, b: Boxes) -> Boxes:
    """Return the smallest boxes that contain two bulks of boxes, pair by pair; empty boxes do not count."""
    lower, upper = np.full(a.shape[:-1], FAR), np.full(a.shape[:-1], -FAR)
    for boxes in (a, b):
        full = (boxes[..., 0] < boxes[..., 1]).all(axis=-1, keepdims=True)
        np.minimum(lower, np.where(full, boxes[..., 0], FAR), out=lower)
        np.maximum(upper, np.where(full, boxes[..., 1], -FAR), out=upper)
    return np.stack((np.where(lower < upper, lower, 0), np.where(lower < upper, upper, 0)), axis=-1)
