"""All-reduces in uneven shares: a worker behind a slow link reduces less of every gradient, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from ....dataflow.graph import Graph
from ...layouts.forms import Parts
from ...layouts.step_split import Layout
from ...plans.plan import Plan


def with_shares(graph: Graph, plan: Plan, gradients: Collection[str], shares: Sequence[float]) -> Plan:
    """Return a plan whose gradients are reduced in shares, those of which that are reduced in two hops."""
    known: dict[Layout, Layout] = {}
    layouts = dict(plan.layouts)
    for name in gradients:
        layout = layouts[name]
        if layout.stop is None:
            continue
        if layout not in known:
            known[layout] = replace(layout, via=_via(layout.shape, shares))
        layouts[name] = known[layout]
    for tensor in graph.tensors:
        if tensor.alias is not None:
            layouts[tensor.name] = layouts[graph.tensors[tensor.alias].name]
    changed = replace(plan, layouts=layouts)
    changed.check_forms(graph)
    totals = changed.count(graph)
    steps = tuple(after - before for before, after in pairwise(totals))
    return replace(changed, cost_bytes=totals[-1], step_cost_bytes=steps)


def share_bounds(extent: int, shares: Sequence[float]) -> list[int]:
    """Return where the shares of a dimension begin and end.

    >>> share_bounds(10, [0.5, 0.0, 0.25, 0.25])
    [0, 5, 5, 8, 10]
    """
    total = sum(shares)
    return [0, *(int(extent * each / total + 0.5) for each in accumulate(shares))]


def _via(shape: tuple[int, ...], shares: Sequence[float]) -> Parts:
    """Cut the longest dimension into shares."""
    axis = max(range(len(shape)), key=lambda each: shape[each])
    bounds = pairwise(share_bounds(shape[axis], shares))
    whole = [(0, extent) for extent in shape]
    return Parts(
        tuple(
            (worker, (*whole[:axis], interval, *whole[axis + 1 :]))
            for worker, interval in enumerate(bounds)
            if interval[0] < interval[1]
        )
    )
