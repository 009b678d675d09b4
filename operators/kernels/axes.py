"""Axes of several arrays of one shape that are walked together."""

from __future__ import annotations

from collections.abc import Sequence

Axis = tuple[int, tuple[int, ...]]
"""A length, and for each array a stride in bytes."""


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Return neighbouring axes as one if the strides of all arrays fit. The last axis is the innermost."""
    found = [axes[0]]
    for length, strides in axes[1:]:
        outer, steps = found[-1]
        if steps == tuple([stride * length for stride in strides]):
            found[-1] = (outer * length, strides)
        else:
            found.append((length, strides))
    return found
