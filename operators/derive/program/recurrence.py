"""Compute linear recurrences along an axis, in place and in few calls.

An axis is cut into short chunks, which advance in parallel. Their last values form a recurrence over
chunks. Then each chunk adds the contribution of the one before. Temporaries hold one value per chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...kernels.kernel import Array

CHUNK = 16
"""Elements of a chunk: a cache line in single precision, if the axis is the fastest in memory."""


def accumulate(combine: np.ufunc, axis: int, *arguments: Array, out: Array) -> None:
    """Set `out[t] = combine(out[t - 1], out[t])`. `arguments` are `out` alone."""
    _run(_Plain(combine), np.moveaxis(out, axis, 0))


def recur(axis: int, *arguments: Array, out: Array) -> None:
    """Set `out[t] = base * out[t - 1] + out[t]`. `arguments` are `out` and the base.

    The base is of length 1 along the axis.
    """
    base = np.moveaxis(np.asarray(arguments[1], out.dtype), axis, 0)[0]
    _run(_Decaying(base), np.moveaxis(out, axis, 0))


def weigh(axis: int, slope: int, level: int, *arguments: Array, out: Array) -> None:
    """Compute sums of terms that decay and are weighted by `slope * distance + level`.

    `arguments` are the terms, which become their sums without weights, and the base if there is one.
    """
    sums, result = (np.moveaxis(array, axis, 0) for array in (arguments[0], out))
    step: _Plain | _Decaying = _Plain(np.add)
    if len(arguments) == 2:
        step = _Decaying(np.moveaxis(np.asarray(arguments[1], out.dtype), axis, 0)[0])
    _run(step, sums)
    # every step increases the distance of all earlier terms by one
    result[0] = 0
    np.copyto(result[1:], sums[:-1])
    if isinstance(step, _Decaying):
        np.multiply(result[1:], step.base, out=result[1:])
    _run(step, result)
    np.multiply(result, slope, out=result)
    if level:
        for part in _parts(len(result)):
            np.add(result[part], np.multiply(sums[part], level), out=result[part])


def fall_off(axis: int, slope: int, first: int, step: int, *arguments: Array, out: Array) -> None:
    """Compute results at distances `first`, `first + step`, ... after the last term.

    `arguments` are the result there, the sum there without weights, and the base if there is one.
    """
    total, sums = arguments[:2]
    shape = [1] * out.ndim
    shape[axis] = -1
    distances = (first + step * np.arange(out.shape[axis])).astype(out.dtype).reshape(shape)
    np.copyto(out, total)
    if slope:
        np.add(out, np.multiply(sums, slope * distances), out=out)
    if len(arguments) == 3:
        base, far, result = (np.moveaxis(array, axis, 0) for array in (arguments[2], distances, out))
        for part in _parts(len(result)):
            np.multiply(result[part], np.power(base, far[part]), out=result[part])


def _parts(count: int) -> Iterator[slice]:
    """Return places in groups whose temporaries are small."""
    return (slice(first, first + CHUNK) for first in range(0, count, CHUNK))


class _Plain:
    """A step that combines a value with the one before it."""

    def __init__(self, combine: np.ufunc) -> None:
        self.combine = combine

    def advance(self, before: Any, current: Any) -> None:
        self.combine(before, current, out=current)

    def over(self, places: int) -> _Plain:
        """Return the step over several places at once."""
        return self

    def take_over(self, before: Any, chunks: Any) -> None:
        """Add the contribution of earlier chunks to all elements of a chunk; `chunks[place, chunk, ...]`."""
        self.combine(before, chunks, out=chunks)


class _Decaying:
    """A step that adds a multiple of the value before."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def advance(self, before: Any, current: Any) -> None:
        np.add(current, before * self.base, out=current)

    def over(self, places: int) -> _Decaying:
        return _Decaying(self._powers(places)[-1])

    def take_over(self, before: Any, chunks: Any) -> None:
        for power, current in zip(self._powers(len(chunks)), chunks, strict=True):
            np.add(current, before * power, out=current)

    def _powers(self, count: int) -> Any:
        repeated = np.broadcast_to(self.base, (count, *self.base.shape))
        return np.multiply.accumulate(repeated, axis=0, dtype=self.base.dtype)


def _run(step: _Plain | _Decaying, values: Any) -> None:
    """Visit `values[t, ...]`; the first one is final."""
    count = len(values) // CHUNK
    if count > 1:
        stride, *strides = values.strides
        # chunks[place, chunk, ...]
        chunks = np.lib.stride_tricks.as_strided(
            values, (CHUNK, count, *values.shape[1:]), (stride, CHUNK * stride, *strides)
        )
        for before, current in pairwise(chunks):
            step.advance(before, current)
        totals = chunks[-1].copy("K")
        _run(step.over(CHUNK), totals)
        step.take_over(totals[:-1], chunks[:, 1:])
    for before, current in pairwise(values[max(count * CHUNK - 1, 0) if count > 1 else 0 :]):
        step.advance(before, current)
