"""Convolutions in groups, in depth and in one to three dimensions."""

from __future__ import annotations

from typing import Any

from .outsider import Outsider
from .peer import F

DEPTHWISE_CONV2D = """
def depthwise_conv2d(data, weight):
    return lambda n, c, y=data.shape[2], x=data.shape[3]: Sum(
        lambda v, u: pad(data[n, c, y + v - 1, x + u - 1], 0) * weight[c, v, u]
    )
"""


def depthwise_conv2d(data: Any, weight: Any) -> Any:
    return F.conv2d(data, weight[:, None], padding=1, groups=data.shape[1])


OUTSIDERS = (
    Outsider(
        DEPTHWISE_CONV2D,
        depthwise_conv2d,
        {"data": (2, 3, 5, 4), "weight": (3, 3, 3)},
        {"data": (8, 64, 56, 56), "weight": (64, 3, 3)},
    ),
)
