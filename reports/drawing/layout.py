"""The parts of a tensor that a plan gives its workers."""

from __future__ import annotations

from ...partitioner.layouts.step_split import Layout
from .marks import Drawing
from .tensor import caption, tensor_drawing
from .tiles import plane

DRAWN_WORKERS = 64
"""If there are more workers than this, the groups after the first steps are drawn instead."""


def drawn_steps(factors: tuple[int, ...]) -> int:
    """Return how many steps leave no more groups than are drawn."""
    groups, steps = 1, 0
    for factor in factors:
        groups *= factor
        if groups > DRAWN_WORKERS:
            break
        steps += 1
    return steps


def drawn_layout(layout: Layout) -> Layout:
    """Return the layout after the steps that are drawn."""
    steps = drawn_steps(layout.factors)
    return Layout(layout.shape, layout.dimensions[:steps], layout.factors[:steps])


def layout_drawing(layout: Layout) -> Drawing:
    """Return the tiles of a layout."""
    drawn = plane(layout.shape, drawn_layout(layout).regions)
    return tensor_drawing(drawn, caption(drawn))
