"""Images: shuffling, resizing, matching."""

from __future__ import annotations

from typing import Any

from .outsider import Outsider
from .peer import F

PIXEL_SHUFFLE = """
def pixel_shuffle(x, *, r):
    return lambda n, c=x.shape[1] // (r * r), y=x.shape[2] * r, u=x.shape[3] * r: x[
        n, c * r * r + y % r * r + u % r, y // r, u // r
    ]
"""


def pixel_shuffle(x: Any, r: int) -> Any:
    return F.pixel_shuffle(x, r)


OUTSIDERS = (
    Outsider(PIXEL_SHUFFLE, pixel_shuffle, {"x": (2, 8, 3, 2), "r": 2}, {"x": (8, 256, 28, 28), "r": 2}),
)
