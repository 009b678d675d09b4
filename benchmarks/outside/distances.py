"""Sets of points: every one with every other."""

from __future__ import annotations

from typing import Any

from .outsider import PROBABILITY, written
from .peer import F, torch


@written(
    """
def pairwise_distance(a, b):
    return lambda n, i, j: sqrt(Sum(lambda d: square(a[n, i, d] - b[n, j, d])))
""",
    small={"a": (2, 4, 3), "b": (2, 5, 3)},
    large={"a": (4, 512, 64), "b": (4, 512, 64)},
)
def pairwise_distance(a: Any, b: Any) -> Any:
    return torch.cdist(a, b)


@written(
    """
def rbf_kernel(a, b, *, gamma):
    squared = lambda i, j: Sum(lambda d: square(a[i, d] - b[j, d]))
    return lambda i, j: exp(-gamma * squared[i, j])
""",
    small={"a": (4, 3), "b": (5, 3), "gamma": 0.5},
    large={"a": (1024, 32), "b": (1024, 32), "gamma": 0.02},
)
def rbf_kernel(a: Any, b: Any, gamma: float) -> Any:
    return torch.exp(-gamma * torch.cdist(a, b).square())


@written(
    """
def chamfer_distance(a, b):
    squared = lambda n, i, j: Sum(lambda d: square(a[n, i, d] - b[n, j, d]))
    from_a = lambda n, i: Min(lambda j: squared[n, i, j])
    from_b = lambda n, j: Min(lambda i: squared[n, i, j])
    a_sum = lambda n: Sum(lambda i: from_a[n, i]) / a.shape[1]
    b_sum = lambda n: Sum(lambda j: from_b[n, j]) / b.shape[1]
    return lambda n: a_sum[n] + b_sum[n]
""",
    small={"a": (2, 4, 3), "b": (2, 5, 3)},
    large={"a": (4, 512, 3), "b": (4, 512, 3)},
)
def chamfer_distance(a: Any, b: Any) -> Any:
    squared = torch.cdist(a, b).square()
    return squared.amin(2).mean(1) + squared.amin(1).mean(1)


@written(
    """
def gram_matrix(x):
    total = lambda n, c, d: Sum(lambda y, u: x[n, c, y, u] * x[n, d, y, u])
    return lambda n, c, d: total[n, c, d] / (x.shape[1] * x.shape[2] * x.shape[3])
""",
    small={"x": (2, 3, 4, 3)},
    large={"x": (4, 128, 56, 56)},
)
def gram_matrix(x: Any) -> Any:
    rows = x.flatten(2)
    return rows @ rows.mT / rows[0].numel()


@written(
    """
def covariance(x):
    mean = lambda c: Sum(lambda n: x[n, c]) / x.shape[0]
    centered = lambda n, c: x[n, c] - mean[c]
    return lambda c, d: Sum(lambda n: centered[n, c] * centered[n, d]) / (x.shape[0] - 1)
""",
    small={"x": (5, 4)},
    large={"x": (4096, 256)},
)
def covariance(x: Any) -> Any:
    return torch.cov(x.T)


@written(
    """
def outer_product_mean(a, b):
    return lambda i, j, c, d: Sum(lambda s: a[s, i, c] * b[s, j, d]) / a.shape[0]
""",
    small={"a": (4, 3, 2), "b": (4, 2, 3)},
    large={"a": (128, 32, 32), "b": (128, 32, 32)},
)
def outer_product_mean(a: Any, b: Any) -> Any:
    return torch.einsum("sic,sjd->ijcd", a, b) / a.shape[0]


@written(
    """
def bilinear_form(x, w, y):
    left = lambda n, o, j: Sum(lambda i: x[n, i] * w[o, i, j])
    return lambda n, o: Sum(lambda j: left[n, o, j] * y[n, j])
""",
    small={"x": (4, 3), "w": (2, 3, 5), "y": (4, 5)},
    large={"x": (256, 128), "w": (64, 128, 128), "y": (256, 128)},
)
def bilinear_form(x: Any, w: Any, y: Any) -> Any:
    return F.bilinear(x, y, w)


@written(
    """
def sinkhorn_step(cost, a, b, v, *, epsilon):
    kernel = lambda n, i, j: exp(-cost[n, i, j] / epsilon)
    row = lambda n, i: Sum(lambda j: kernel[n, i, j] * v[n, j])
    u = lambda n, i: a[n, i] / row[n, i]
    column = lambda n, j: Sum(lambda i: kernel[n, i, j] * u[n, i])
    return lambda n, i, j: u[n, i] * kernel[n, i, j] * (b[n, j] / column[n, j])
""",
    small={"cost": (2, 4, 5), "a": (2, 4), "b": (2, 5), "v": (2, 5), "epsilon": 0.5},
    large={"cost": (8, 512, 512), "a": (8, 512), "b": (8, 512), "v": (8, 512), "epsilon": 0.5},
    kinds={"cost": PROBABILITY, "a": PROBABILITY, "b": PROBABILITY, "v": PROBABILITY},
)
def sinkhorn_step(cost: Any, a: Any, b: Any, v: Any, epsilon: float) -> Any:
    kernel = torch.exp(-cost / epsilon)
    u = a[:, :, None] / (kernel @ v[:, :, None])
    return u * kernel * (b[:, None] / (u.mT @ kernel))
