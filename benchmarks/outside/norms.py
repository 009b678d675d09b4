"""Normalisation."""

from __future__ import annotations

from typing import Any

from .outsider import DATA, POSITIVE, written
from .peer import F


@written(
    """
def rms_norm(x, weight):
    mean_square = lambda b, t: Sum(lambda d: x[b, t, d] * x[b, t, d]) / x.shape[2]
    scale = lambda b, t: rsqrt(mean_square[b, t] + 0.000001)
    return lambda b, t, d: x[b, t, d] * scale[b, t] * weight[d]
""",
    small={"x": (3, 4, 6), "weight": (6,)},
    large={"x": (8, 512, 512), "weight": (512,)},
)
def rms_norm(x: Any, weight: Any) -> Any:
    return F.rms_norm(x, weight.shape, weight, 1e-6)


@written(
    """
def group_norm(x, gamma, beta, *, groups):
    total = lambda n, g=groups: Sum(
        lambda c=x.shape[1] // groups, y, u: x[n, g * (x.shape[1] // groups) + c, y, u]
    )
    mean = lambda n, g: total[n, g] * groups / (x.shape[1] * x.shape[2] * x.shape[3])
    centered = lambda n, c, y, u: x[n, c, y, u] - mean[n, c // (x.shape[1] // groups)]
    squares = lambda n, g=groups: Sum(
        lambda c=x.shape[1] // groups, y, u: square(centered[n, g * (x.shape[1] // groups) + c, y, u])
    )
    scale = lambda n, g: rsqrt(squares[n, g] * groups / (x.shape[1] * x.shape[2] * x.shape[3]) + 0.00001)
    return lambda n, c, y, u: (
        centered[n, c, y, u] * scale[n, c // (x.shape[1] // groups)] * gamma[c] + beta[c]
    )
""",
    small={"x": (2, 6, 3, 4), "gamma": (6,), "beta": (6,), "groups": 3},
    large={"x": (16, 64, 56, 56), "gamma": (64,), "beta": (64,), "groups": 8},
)
def group_norm(x: Any, gamma: Any, beta: Any, groups: int) -> Any:
    return F.group_norm(x, groups, gamma, beta)


@written(
    """
def plain_instance_norm(x):
    mean = lambda n, c: Sum(lambda y, u: x[n, c, y, u]) / (x.shape[2] * x.shape[3])
    variance = lambda n, c: Sum(lambda y, u: square(x[n, c, y, u] - mean[n, c])) / (x.shape[2] * x.shape[3])
    return lambda n, c, y, u: (x[n, c, y, u] - mean[n, c]) * rsqrt(variance[n, c] + 0.00001)
""",
    small={"x": (2, 3, 4, 5)},
    large={"x": (8, 64, 56, 56)},
)
def plain_instance_norm(x: Any) -> Any:
    return F.instance_norm(x)


@written(
    """
def plain_layer_norm(x):
    mean = lambda b, t: Sum(lambda d: x[b, t, d]) / x.shape[2]
    variance = lambda b, t: Sum(lambda d: square(x[b, t, d] - mean[b, t])) / x.shape[2]
    return lambda b, t, d: (x[b, t, d] - mean[b, t]) * rsqrt(variance[b, t] + 0.00001)
""",
    small={"x": (3, 4, 6)},
    large={"x": (8, 512, 512)},
)
def plain_layer_norm(x: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:])


@written(
    """
def weight_norm(v, g):
    norm = lambda o: sqrt(Sum(lambda i: v[o, i] * v[o, i]))
    return lambda o, i: v[o, i] * (g[o] / norm[o])
""",
    small={"v": (4, 5), "g": (4,)},
    large={"v": (2048, 2048), "g": (2048,)},
)
def weight_norm(v: Any, g: Any) -> Any:
    return v * (g / v.norm(dim=1))[:, None]


@written(
    """
def running_norm(x, mean, variance, *, momentum):
    new_mean = lambda c: momentum * mean[c] + (1 - momentum) * Sum(lambda n: x[n, c]) / x.shape[0]
    new_variance = lambda c: (
        momentum * variance[c] + (1 - momentum) * Sum(lambda n: square(x[n, c] - mean[c])) / x.shape[0]
    )
    result = lambda n, c: (x[n, c] - new_mean[c]) * rsqrt(new_variance[c] + 0.001)
    return result, new_mean, new_variance
""",
    small={"x": (5, 4), "mean": (4,), "variance": (4,), "momentum": 0.9},
    large={"x": (4096, 512), "mean": (512,), "variance": (512,), "momentum": 0.9},
    kinds={"mean": DATA, "variance": POSITIVE},
)
def running_norm(x: Any, mean: Any, variance: Any, momentum: float) -> Any:
    new_mean = momentum * mean + (1 - momentum) * x.mean(0)
    new_variance = momentum * variance + (1 - momentum) * (x - mean).square().mean(0)
    return (x - new_mean) * (new_variance + 0.001).rsqrt(), new_mean, new_variance
