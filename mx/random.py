"""`mx.random.seed`, and random arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..runtime.initializer import generator
from .ndarray.array import NDArray


class _State:
    """The seed in force, and how many arrays were drawn since it was set."""

    seed = 0
    drawn = 0


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Seed everything drawn from now on, start values of parameters included."""
    _State.seed, _State.drawn = int(seed_state), 0


def current_seed() -> int:
    """Return the number given to `seed`."""
    return _State.seed


def next_generator() -> np.random.Generator:
    """Return a generator for the next array."""
    _State.drawn += 1
    return generator(f"array {_State.drawn}", _State.seed)


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
