"""Normalisation."""

from __future__ import annotations

from typing import Any

from .outsider import Outsider
from .peer import F

RMS_NORM = """
def rms_norm(x, weight):
    mean_square = lambda b, t: Sum(lambda d: x[b, t, d] * x[b, t, d]) / x.shape[2]
    scale = lambda b, t: rsqrt(mean_square[b, t] + 0.000001)
    return lambda b, t, d: x[b, t, d] * scale[b, t] * weight[d]
"""


def rms_norm(x: Any, weight: Any) -> Any:
    return F.rms_norm(x, weight.shape, weight, 1e-6)


OUTSIDERS = (
    Outsider(
        RMS_NORM,
        rms_norm,
        {"x": (3, 4, 6), "weight": (6,)},
        {"x": (8, 512, 512), "weight": (512,)},
    ),
)
