"""Attention and positions."""

from __future__ import annotations

from typing import Any

from .outsider import DATA, Outsider
from .peer import F, torch

ROTARY_HALF = """
def rotary_half(x, cosine, sine, *, half):
    return lambda b, t, h, d: x[b, t, h, d] * cosine[t, d] + where(
        d < half, -x[b, t, h, (d + half) % (2 * half)], x[b, t, h, (d + half) % (2 * half)]
    ) * sine[t, d]
"""


def rotary_half(x: Any, cosine: Any, sine: Any, half: int) -> Any:
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cosine[:, None] + turned * sine[:, None]


LOCAL_ATTENTION = """
def local_attention(q, k, v, *, window):
    score = lambda b, t, w=window: where(
        t + w >= window - 1, Sum(lambda d: q[b, t, d] * pad(k[b, t + w - window + 1, d], 0)), -1000000.0
    ) * rsqrt(q.shape[2])
    peak = lambda b, t: Max(lambda w: score[b, t, w])
    weight = lambda b, t, w: exp(score[b, t, w] - peak[b, t])
    total = lambda b, t: Sum(lambda w: weight[b, t, w])
    mixed = lambda b, t, d: Sum(lambda w: weight[b, t, w] * pad(v[b, t + w - window + 1, d], 0))
    return lambda b, t, d: mixed[b, t, d] / total[b, t]
"""


def local_attention(q: Any, k: Any, v: Any, window: int) -> Any:
    place = torch.arange(q.shape[1])
    back = place[:, None] - place
    return F.scaled_dot_product_attention(q, k, v, (back >= 0) & (back < window))


OUTSIDERS = (
    Outsider(
        ROTARY_HALF,
        rotary_half,
        {"x": (2, 4, 2, 8), "cosine": (4, 8), "sine": (4, 8), "half": 4},
        {"x": (4, 256, 16, 64), "cosine": (256, 64), "sine": (256, 64), "half": 32},
        {"cosine": DATA, "sine": DATA},
    ),
    Outsider(
        LOCAL_ATTENTION,
        local_attention,
        {"q": (2, 6, 4), "k": (2, 6, 4), "v": (2, 6, 4), "window": 3},
        {"q": (8, 512, 64), "k": (8, 512, 64), "v": (8, 512, 64), "window": 64},
    ),
)
