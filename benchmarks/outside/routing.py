"""Sending rows to places that data choose: experts, segments, bins."""

from __future__ import annotations

from typing import Any

from .outsider import Outsider, below
from .peer import torch

SEGMENT_SUM = """
def segment_sum(x, segment, *, segments):
    return lambda g=segments, d: Sum(lambda n: where(segment[n] == g, x[n, d], 0))
"""


def segment_sum(x: Any, segment: Any, segments: int) -> Any:
    return torch.zeros(segments, x.shape[1], dtype=x.dtype).index_add(0, segment, x)


HISTOGRAM = """
def histogram(bin, *, bins):
    return lambda k=bins: Sum(lambda n: where(bin[n] == k, 1, 0))
"""


def histogram(bin: Any, bins: int) -> Any:
    return torch.bincount(bin, minlength=bins)


OUTSIDERS = (
    Outsider(
        SEGMENT_SUM,
        segment_sum,
        {"x": (7, 3), "segment": (7,), "segments": 4},
        {"x": (16384, 128), "segment": (16384,), "segments": 64},
        {"segment": below("segments")},
    ),
    Outsider(
        HISTOGRAM,
        histogram,
        {"bin": (9,), "bins": 5},
        {"bin": (1048576,), "bins": 64},
        {"bin": below("bins")},
    ),
)
