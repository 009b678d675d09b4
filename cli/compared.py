"""Compare the plans of several methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from .request import Request

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..partitioner import Fitting, Plan
    from ..programs.memory import MemoryFigures
    from ..programs.program import PartitionedGraph
    from ..simulator.timeline import Timeline


def slow_methods() -> set[str]:
    """Return the methods that may take minutes for a large model."""
    from ..partitioner.methods.method import every_method

    return {name for name, method in every_method().items() if method.slow}


def figures(
    graph: Graph,
    found: Fitting,
    memory: MemoryFigures,
    request: Request,
    programs: PartitionedGraph | None = None,
    timeline: Timeline | None = None,
) -> dict[str, Any]:
    """Return what there is to compare of a plan, as `--json` prints it.

    `programs` are needed for what crosses the links of a machine.
    """
    from ..partitioner.lowering.computed_load import computed_load

    plan = found.plan
    return {
        "method": plan.method,
        "cost_bytes": plan.cost_bytes,
        "step_cost_bytes": list(plan.step_cost_bytes),
        "lower_bound_bytes": plan.lower_bound_bytes,
        "replicate": plan.space.replicate,
        "keep": plan.space.keep,
        "space": str(plan.space),
        "feed": plan.space.feed,
        "kept_copies": sum(map(len, plan.copies.values())),
        **({"merged": plan.merged} if request.settings.merge else {}),
        "unproven_steps": [dataclasses.asdict(step) for step in plan.unproven],
        **_timed(plan),
        "search_seconds": plan.search_seconds,
        "peak_bytes_per_worker": max(memory.arena_bytes),
        "flops_per_worker": list(computed_load(graph, plan).flops),
        **request.facts(programs, timeline, found),
    }


def _timed(plan: Plan) -> dict[str, Any]:
    """Return what the search minimised in place of bytes, if it did; the bound is null if none is proven."""
    timed = plan.transfer_time
    if timed is None:
        return {}
    return {"objective_seconds": timed.seconds, "objective_lower_bound_seconds": timed.lower_bound}


def watched(request: Request, graph: Graph, method: str) -> Fitting:
    """Search by one method, and show its progress on standard error."""
    from ..partitioner.methods.method import find_method
    from ..reports.search import BoundsLine, SearchLine, format_picoseconds
    from ..reports.units import format_bytes

    if find_method(method).simulates:
        with SearchLine(what=f"searching by {method}") as line:
            return request.partition(graph, method, watch=line, trying=line.trying)
    show = format_bytes if request.settings.objective == "bytes" else format_picoseconds
    with BoundsLine(show=show, what=f"searching by {method}") as bounds:
        return request.partition(graph, method, bounds, trying=bounds.trying)


def compared(
    graph: Graph,
    request: Request,
    without: Collection[str] = (),
    search: Callable[[Request, Graph, str], Fitting] = Request.partition,
) -> tuple[list[dict[str, Any]], dict[str, PlanError]]:
    """Return the figures of every method but `without`, and why a method could not do what was asked."""
    from ..partitioner import lower
    from ..partitioner.plans.plan import graph_of
    from ..programs.memory import plan_memory

    entries: list[dict[str, Any]] = []
    left_out: dict[str, PlanError] = {}
    for method, asked in request.each().items():
        if method in without:
            continue
        try:
            found = search(asked, graph, method)
        except PlanError as error:
            left_out[method] = error
            continue
        planned = graph_of(found.plan)
        programs = lower(planned, found.plan)
        timeline = asked.timeline(programs)
        entries.append(figures(planned, found, plan_memory(programs), request, programs, timeline))
    return entries, left_out
