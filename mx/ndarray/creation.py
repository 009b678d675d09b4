"""New arrays, of float32 if nothing else is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.context import Context
from .array import NDArray, Result, function

Extents = int | Sequence[int]


def array(source: Any, ctx: Context | None = None, dtype: npt.DTypeLike | None = None) -> NDArray:
    """Return a copy of numbers: of `dtype`, else of the NDArray's type, else of float32."""
    return NDArray(np.array(source, dtype or (source.dtype if isinstance(source, NDArray) else np.float32)))


def empty(shape: Extents, ctx: Context | None = None, dtype: npt.DTypeLike = "float32") -> NDArray:
    return zeros(shape, ctx, dtype)


def zeros(shape: Extents, ctx: Context | None = None, dtype: npt.DTypeLike = "float32", **_: Any) -> NDArray:
    return NDArray(np.zeros(shape, dtype or "float32"))


def ones(shape: Extents, ctx: Context | None = None, dtype: npt.DTypeLike = "float32", **_: Any) -> NDArray:
    return NDArray(np.ones(shape, dtype or "float32"))


def full(shape: Extents, val: float, ctx: Context | None = None, dtype: npt.DTypeLike = "float32") -> NDArray:
    return NDArray(np.full(shape, val, dtype or "float32"))


def zeros_like(data: NDArray) -> NDArray:
    return NDArray(np.zeros_like(data.numpy_array))


def ones_like(data: NDArray) -> NDArray:
    return NDArray(np.ones_like(data.numpy_array))


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Context | None = None,
    dtype: npt.DTypeLike = "float32",
) -> NDArray:
    """`start`, `start + step`, ... below `stop`, each `repeat` times."""
    numbers = np.arange(start, step=step) if stop is None else np.arange(start, stop, step)
    return NDArray(np.repeat(numbers, repeat).astype(dtype or "float32"))


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> Result:
    """Return arrays one after the other. Raises ShapeError if they do not fit."""
    return function("Concat")(*arrays, dim=axis)
