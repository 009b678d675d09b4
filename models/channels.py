"""Networks with fewer or more channels than published."""

from __future__ import annotations


def scaled(channels: int, width: float) -> int:
    """`channels` times `width`, at least one."""
    return max(1, round(channels * width))
