"""Partial results in two hops: each is reduced in parts of its own, which all holders then fetch."""

from __future__ import annotations

from dataclasses import replace

from ...analyzer.indices.region import to_region
from .forms import Parts
from .shared_out import shared_out
from .step_split import Layout


def in_two_hops(layout: Layout) -> Layout:
    """Let partial results of a layout with replicas be reduced once, spread over the holders."""
    found = layout.expanded
    if found.terms > 1 or not layout.shape:
        return layout
    parts = shared_out(found.boxes)
    if (parts == found.boxes).all():
        return layout
    return replace(layout, via=Parts(tuple(zip(found.workers.tolist(), map(to_region, parts), strict=True))))
