"""The seed that `mx.random.seed` sets, and the generators that follow from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.initializer import generator


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
