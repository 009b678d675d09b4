"""`mx.random.seed`, and random arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ndarray.array import NDArray
from .seed import current_seed, next_generator, seed

__all__ = ["current_seed", "normal", "seed", "uniform"]


def uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: int | Sequence[int] = 1,
    ctx: Any = None,
    dtype: str = "float32",
) -> NDArray:
    """Return numbers evenly distributed in `[low, high)`."""
    return NDArray(next_generator().uniform(low, high, shape).astype(dtype))


def normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: int | Sequence[int] = 1,
    ctx: Any = None,
    dtype: str = "float32",
) -> NDArray:
    """Normally distributed numbers."""
    return NDArray(next_generator().normal(loc, scale, shape).astype(dtype))
