"""Operators that accumulate along a sequence."""

from __future__ import annotations

from typing import Any

from .outsider import MASK, POSITIVE, PROBABILITY, written
from .peer import torch


@written(
    """
def cumulative_sum(x):
    return lambda b, t=x.shape[1]: Sum(lambda s: where(s <= t, x[b, s], 0))
""",
    small={"x": (3, 5)},
    large={"x": (2048, 1024)},
)
def cumulative_sum(x: Any) -> Any:
    return x.cumsum(1)


@written(
    """
def cumulative_product(x):
    return lambda b, t=x.shape[1]: Prod(lambda s: where(s <= t, x[b, s], 1))
""",
    small={"x": (3, 5)},
    large={"x": (2048, 256)},
    kinds={"x": POSITIVE},
)
def cumulative_product(x: Any) -> Any:
    return x.cumprod(1)


@written(
    """
def cumulative_max(x):
    return lambda b, t=x.shape[1]: Max(lambda s: where(s <= t, x[b, s], -inf))
""",
    small={"x": (3, 5)},
    large={"x": (2048, 256)},
)
def cumulative_max(x: Any) -> Any:
    return x.cummax(1).values


@written(
    """
def ema_scan(x, a):
    return lambda b, t=x.shape[1], d: Sum(lambda s: where(s <= t, a[d] ** (t - s) * x[b, s, d], 0))
""",
    small={"x": (2, 5, 3), "a": (3,)},
    large={"x": (8, 256, 64), "a": (64,)},
    kinds={"a": PROBABILITY},
)
def ema_scan(x: Any, a: Any) -> Any:
    state = torch.zeros_like(x[:, 0])
    states = []
    for step in x.unbind(1):
        state = state * a + step
        states.append(state)
    return torch.stack(states, 1)


@written(
    """
def masked_mean_pool(x, mask):
    total = lambda b, d: Sum(lambda t: x[b, t, d] * mask[b, t])
    count = lambda b: Sum(lambda t: mask[b, t])
    return lambda b, d: total[b, d] / maximum(count[b], 1)
""",
    small={"x": (3, 5, 4), "mask": (3, 5)},
    large={"x": (32, 256, 256), "mask": (32, 256)},
    kinds={"mask": MASK},
)
def masked_mean_pool(x: Any, mask: Any) -> Any:
    return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
