"""Plans whose choices were changed, with the bytes that they move now."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ...dataflow.graph import Graph
from ..costs.plan_bytes import KnownCounts
from .plan import Plan


def recounted(graph: Graph, plan: Plan, known: KnownCounts | None = None) -> Plan:
    """Return a plan with its bytes counted; it has no bound if it moves less than plans of its space.

    `known` has the counts of other plans with the same factors.
    """
    totals = plan.count(graph, known)
    return replace(
        plan,
        cost_bytes=totals[-1],
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=plan.lower_bound_bytes if plan.lower_bound_bytes <= totals[-1] else 0,
    )


def with_stops(graph: Graph, plan: Plan, other: Plan, known: KnownCounts | None = None) -> Plan:
    """Let partial results stop where they do in another plan, if their homes are equal in both.

    `known` is as for `recounted`.
    """
    layouts = {
        name: other.layouts[name]
        for name, layout in plan.layouts.items()
        if other.layouts[name].via is not None and other.layouts[name] != layout
        and other.layouts[name].form == layout.form
    }  # fmt: skip
    return recounted(graph, replace(plan, layouts={**plan.layouts, **layouts}), known) if layouts else plan
