"""Try one of NumPy's loops: compare a function of a few strided elements with that of contiguous copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from .workspace import Array

Function = Callable[..., Any]
"""`function(*arguments, out=out)`. An element of `out` depends only on the elements at its own place."""

DType = np.dtype[Any]
Number = int | float
Kind = DType | tuple[type, Number]
"""An array's element type, or a number and its type: NumPy has loops for certain numbers."""

Strides = tuple[int, ...]

COUNTS = (2, 3, 5, 17, 67, 259)
"""Numbers of elements to try: fewer than one instruction takes, more than an unrolled loop takes, any rest.
"""

REACH_BYTES = 1 << 24
"""Fewer elements are tried if they lie far apart, but at least two."""

GUARD_BYTES = 64
"""This many bytes next to an output element must not change: the widest operand of an instruction."""

GUARD = 0xA5

ULPS = 16
"""Relative tolerance: NumPy computes some functions in two ways, and the last digits may differ."""


@lru_cache(maxsize=1 << 16)
def is_right(function: Function, kinds: tuple[Kind, ...], strides: Strides) -> bool:
    """Return whether a function is right for operands, the output last, with these strides in bytes.

    An output with stride 0 is that of a reduction, of the second operand by a ufunc.
    """
    with np.errstate(all="ignore"):
        if strides[-1] == 0:
            assert isinstance(function, np.ufunc)
            return all(_reduces(function, kinds, strides, count) for count in _counts(strides))
        return all(
            _agrees(function, kinds, strides, count, place)
            for count in _counts(strides)
            for place in _places(kinds, strides)
        )


def _counts(strides: Strides) -> Iterator[int]:
    most = max(2, REACH_BYTES // max(map(abs, strides)))
    yield from (count for count in COUNTS if count <= most)


def _places(kinds: tuple[Kind, ...], strides: Strides) -> Iterator[int | None]:
    """Yield where the output may be: in its own memory (None), or in that of an argument with its layout."""
    yield None
    for number, (kind, stride) in enumerate(zip(kinds[:-1], strides, strict=False)):
        if isinstance(kind, np.dtype) and kind == kinds[-1] and stride == strides[-1]:
            yield number


def _agrees(
    function: Function, kinds: tuple[Kind, ...], strides: Strides, count: int, place: int | None
) -> bool:
    """Return whether elements that are apart give what contiguous ones give, and nothing around
    them changes.
    """
    near: list[Array | Number] = []
    apart: list[_Apart | Number] = []
    for number, (kind, stride) in enumerate(zip(kinds[:-1], strides, strict=False)):
        if isinstance(kind, tuple):
            near.append(kind[1])
            apart.append(kind[1])
            continue
        values = _values(kind, count, number)
        if stride == 0:
            values[:] = values[0]
        near.append(values)
        apart.append(_Apart(values, stride))
    expected = np.zeros(count, kinds[-1])
    function(*near, out=expected)
    target = _Apart(np.zeros(count, kinds[-1]), strides[-1]) if place is None else apart[place]
    assert isinstance(target, _Apart)
    function(*(each.view if isinstance(each, _Apart) else each for each in apart), out=target.view)
    return _equal(target.view, expected) and target.guarded


def _reduces(function: np.ufunc, kinds: tuple[Kind, ...], strides: Strides, count: int) -> bool:
    """Return whether elements that are apart are reduced to what contiguous ones are."""
    kind = kinds[1]
    assert isinstance(kind, np.dtype)
    # sums and products of these are exact
    values = np.resize(np.array([2, 0.5, 1, 0.5, 2, 1, 1]), count).astype(kind)
    found, expected = (np.zeros((), kinds[-1]) for _ in range(2))
    function.reduce(values, dtype=kinds[-1], out=expected)
    function.reduce(_Apart(values, strides[1]).view, dtype=kinds[-1], out=found)
    return bool(found == expected)


class _Apart:
    """Values `stride` bytes apart, and guards around each."""

    def __init__(self, values: Array, stride: int) -> None:
        count, size = len(values), values.itemsize
        reach = abs(stride) * (count - 1)
        memory = np.empty(GUARD_BYTES + reach + size + GUARD_BYTES, np.uint8)
        gap = (count, min(max(abs(stride) - size, 0), GUARD_BYTES))
        after = GUARD_BYTES + size
        self._guards = (
            memory[:GUARD_BYTES],
            memory[-GUARD_BYTES:],
            np.ndarray(gap, np.uint8, memory, after, (abs(stride), 1)),
        )
        for guard in self._guards:
            guard.fill(GUARD)
        first = GUARD_BYTES + (reach if stride < 0 else 0)
        self.view: Array = np.ndarray((count,), values.dtype, memory, first, (stride,))
        self.view[...] = values

    @property
    def guarded(self) -> bool:
        """Whether nothing was written between the elements."""
        return all(bool((guard == GUARD).all()) for guard in self._guards)


def _values(dtype: DType, count: int, number: int) -> Array:
    """Return values for operand `number`, each unlike its neighbours; fractions lie on both sides of 1."""
    steps = (np.arange(count) * 37 + number * 11) % 101
    match dtype.kind:
        case "f":
            return (steps / 56 + 0.1).astype(dtype)
        case "b":
            return np.asarray(steps % 3 == 0)
        case _:
            return (steps % 11 + 1).astype(dtype)


def _equal(found: Array, expected: Array) -> bool:
    if np.array_equal(found, expected):
        return True
    if expected.dtype.kind != "f":
        return False
    tolerance = ULPS * float(np.finfo(expected.dtype.type).eps)  # type: ignore[type-var]
    return bool(np.isclose(found, expected, rtol=tolerance, atol=0, equal_nan=True).all())
