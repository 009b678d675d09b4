"""Losses."""

from __future__ import annotations

from typing import Any

from .outsider import Outsider
from .peer import F, torch

INFO_NCE = """
def info_nce(a, b, *, temperature):
    a_norm = lambda i: sqrt(Sum(lambda d: a[i, d] * a[i, d]))
    b_norm = lambda i: sqrt(Sum(lambda d: b[i, d] * b[i, d]))
    product = lambda i, j: Sum(lambda d: a[i, d] * b[j, d])
    logit = lambda i, j: product[i, j] / (a_norm[i] * b_norm[j] * temperature)
    peak = lambda i: Max(lambda j: logit[i, j])
    total = lambda i: Sum(lambda j: exp(logit[i, j] - peak[i]))
    return lambda: Sum(lambda i: log(total[i]) + peak[i] - logit[i, i]) / a.shape[0]
"""


def info_nce(a: Any, b: Any, temperature: float) -> Any:
    logits = F.normalize(a) @ F.normalize(b).T / temperature
    return F.cross_entropy(logits, torch.arange(len(a)))


OUTSIDERS = (
    Outsider(
        INFO_NCE,
        info_nce,
        {"a": (5, 4), "b": (5, 4), "temperature": 0.5},
        {"a": (512, 256), "b": (512, 256), "temperature": 0.1},
    ),
)
