"""Sequences: sums over what came before, cells of recurrent networks."""

from __future__ import annotations

from typing import Any

from .outsider import PROBABILITY, Outsider
from .peer import torch

CUMULATIVE_SUM = """
def cumulative_sum(x):
    return lambda b, t=x.shape[1]: Sum(lambda s: where(s <= t, x[b, s], 0))
"""


def cumulative_sum(x: Any) -> Any:
    return x.cumsum(1)


EMA_SCAN = """
def ema_scan(x, a):
    return lambda b, t=x.shape[1], d: Sum(lambda s: where(s <= t, a[d] ** (t - s) * x[b, s, d], 0))
"""


def ema_scan(x: Any, a: Any) -> Any:
    state = torch.zeros_like(x[:, 0])
    states = []
    for step in x.unbind(1):
        state = state * a + step
        states.append(state)
    return torch.stack(states, 1)


OUTSIDERS = (
    Outsider(CUMULATIVE_SUM, cumulative_sum, {"x": (3, 5)}, {"x": (1024, 2048)}),
    Outsider(
        EMA_SCAN, ema_scan, {"x": (2, 5, 3), "a": (3,)}, {"x": (8, 256, 64), "a": (64,)}, {"a": PROBABILITY}
    ),
)
