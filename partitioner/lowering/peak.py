"""The memory that a plan needs."""

from __future__ import annotations

from ...dataflow.graph import Graph
from ...programs.memory import plan_memory
from ..plans.plan import Plan
from .lowering import lower


def peak_bytes(graph: Graph, plan: Plan) -> int:
    """Return the largest arena of the plan's workers."""
    return max(plan_memory(lower(graph, plan)).arena_bytes)
