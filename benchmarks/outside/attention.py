"""Attention, and what tells it positions."""

from __future__ import annotations

from typing import Any

from .outsider import DATA, POSITIVE, below, written
from .peer import F, torch


@written(
    """
def rotary_half(x, cosine, sine, *, half):
    return lambda b, t, h, d: x[b, t, h, d] * cosine[t, d] + where(
        d < half, -x[b, t, h, (d + half) % (2 * half)], x[b, t, h, (d + half) % (2 * half)]
    ) * sine[t, d]
""",
    small={"x": (2, 4, 2, 8), "cosine": (4, 8), "sine": (4, 8), "half": 4},
    large={"x": (4, 256, 16, 64), "cosine": (256, 64), "sine": (256, 64), "half": 32},
    kinds={"cosine": DATA, "sine": DATA},
)
def rotary_half(x: Any, cosine: Any, sine: Any, half: int) -> Any:
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cosine[:, None] + turned * sine[:, None]


@written(
    """
def rotary_pairs(x, cosine, sine):
    return lambda b, t, h, d: x[b, t, h, d] * cosine[t, d // 2] + where(
        d % 2 == 0, -x[b, t, h, d // 2 * 2 + 1], x[b, t, h, d // 2 * 2]
    ) * sine[t, d // 2]
""",
    small={"x": (2, 4, 2, 8), "cosine": (4, 4), "sine": (4, 4)},
    large={"x": (4, 256, 16, 64), "cosine": (256, 32), "sine": (256, 32)},
    kinds={"cosine": DATA, "sine": DATA},
)
def rotary_pairs(x: Any, cosine: Any, sine: Any) -> Any:
    even, odd = x[..., ::2], x[..., 1::2]
    c, s = cosine[:, None], sine[:, None]
    return torch.stack((even * c - odd * s, odd * c + even * s), -1).flatten(-2)


@written(
    """
def negated_rotate_half(x, *, half):
    return lambda t, d=x.shape[1]: -x[t, (d + half) % (2 * half)]
""",
    small={"x": (5, 8), "half": 4},
    large={"x": (32768, 64), "half": 32},
)
def negated_rotate_half(x: Any, half: int) -> Any:
    return -torch.cat((x[:, half:], x[:, :half]), 1)


@written(
    """
def alibi_scores(q, k, slope):
    product = lambda b, h, i, j: Sum(lambda d: q[b, h, i, d] * k[b, h, j, d])
    return lambda b, h, i, j: product[b, h, i, j] * rsqrt(q.shape[3]) - slope[h] * abs(i - j)
""",
    small={"q": (2, 2, 4, 3), "k": (2, 2, 5, 3), "slope": (2,)},
    large={"q": (2, 8, 256, 64), "k": (2, 8, 256, 64), "slope": (8,)},
    kinds={"slope": POSITIVE},
)
def alibi_scores(q: Any, k: Any, slope: Any) -> Any:
    distance = (torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])).abs()
    return q @ k.mT * q.shape[3] ** -0.5 - slope[:, None, None] * distance


@written(
    """
def relative_bias(scores, table, bucket):
    return lambda b, h, i, j: scores[b, h, i, j] + table[bucket[i, j], h]
""",
    small={"scores": (2, 3, 4, 4), "table": (5, 3), "bucket": (4, 4)},
    large={"scores": (4, 8, 256, 256), "table": (32, 8), "bucket": (256, 256)},
    kinds={"bucket": below("table", 0)},
)
def relative_bias(scores: Any, table: Any, bucket: Any) -> Any:
    return scores + table[bucket].permute(2, 0, 1)


@written(
    """
def grouped_query_attention(q, k, v, *, share):
    product = lambda b, h, i, j: Sum(lambda d: q[b, h, i, d] * k[b, h // share, j, d])
    score = lambda b, h, i, j: product[b, h, i, j] * rsqrt(q.shape[3])
    peak = lambda b, h, i: Max(lambda j: score[b, h, i, j])
    weight = lambda b, h, i, j: exp(score[b, h, i, j] - peak[b, h, i])
    total = lambda b, h, i: Sum(lambda j: weight[b, h, i, j])
    mixed = lambda b, h, i, d: Sum(lambda j: weight[b, h, i, j] * v[b, h // share, j, d])
    return lambda b, h, i, d: mixed[b, h, i, d] / total[b, h, i]
""",
    small={"q": (2, 4, 3, 4), "k": (2, 2, 5, 4), "v": (2, 2, 5, 4), "share": 2},
    large={"q": (2, 8, 256, 64), "k": (2, 2, 256, 64), "v": (2, 2, 256, 64), "share": 4},
)
def grouped_query_attention(q: Any, k: Any, v: Any, share: int) -> Any:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


@written(
    """
def local_attention(q, k, v, *, window):
    product = lambda b, t, w=window: Sum(lambda d: q[b, t, d] * pad(k[b, t + w - window + 1, d], 0))
    score = lambda b, t, w: where(t + w >= window - 1, product[b, t, w] * rsqrt(q.shape[2]), -1000000.0)
    peak = lambda b, t: Max(lambda w: score[b, t, w])
    weight = lambda b, t, w: exp(score[b, t, w] - peak[b, t])
    total = lambda b, t: Sum(lambda w: weight[b, t, w])
    mixed = lambda b, t, d: Sum(lambda w: weight[b, t, w] * pad(v[b, t + w - window + 1, d], 0))
    return lambda b, t, d: mixed[b, t, d] / total[b, t]
""",
    small={"q": (2, 6, 4), "k": (2, 6, 4), "v": (2, 6, 4), "window": 3},
    large={"q": (8, 512, 64), "k": (8, 512, 64), "v": (8, 512, 64), "window": 64},
)
def local_attention(q: Any, k: Any, v: Any, window: int) -> Any:
    place = torch.arange(q.shape[1])
    back = place[:, None] - place
    return F.scaled_dot_product_attention(q, k, v, (back >= 0) & (back < window))


@written(
    """
def linear_attention(q, k, v):
    feature = lambda b, t, d: where(k[b, t, d] > 0, k[b, t, d] + 1, exp(k[b, t, d]))
    query = lambda b, t, d: where(q[b, t, d] > 0, q[b, t, d] + 1, exp(q[b, t, d]))
    memory = lambda b, d, e: Sum(lambda t: feature[b, t, d] * v[b, t, e])
    mass = lambda b, d: Sum(lambda t: feature[b, t, d])
    total = lambda b, t: Sum(lambda d: query[b, t, d] * mass[b, d])
    mixed = lambda b, t, e: Sum(lambda d: query[b, t, d] * memory[b, d, e])
    return lambda b, t, e: mixed[b, t, e] / total[b, t]
""",
    small={"q": (2, 4, 3), "k": (2, 5, 3), "v": (2, 5, 4)},
    large={"q": (16, 512, 64), "k": (16, 512, 64), "v": (16, 512, 64)},
)
def linear_attention(q: Any, k: Any, v: Any) -> Any:
    query, feature = F.elu(q) + 1, F.elu(k) + 1
    return query @ (feature.mT @ v) / (query @ feature.sum(1)[:, :, None])


@written(
    """
def causal_linear_attention(q, k, v):
    product = lambda b, t, s: Sum(lambda d: q[b, t, d] * k[b, s, d])
    before = lambda b, t, s: where(s <= t, product[b, t, s], 0)
    return lambda b, t, e: Sum(lambda s: before[b, t, s] * v[b, s, e])
""",
    small={"q": (2, 5, 3), "k": (2, 5, 3), "v": (2, 5, 4)},
    large={"q": (16, 256, 64), "k": (16, 256, 64), "v": (16, 256, 64)},
)
def causal_linear_attention(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.mT).tril() @ v
