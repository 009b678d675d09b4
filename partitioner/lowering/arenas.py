"""The arenas of many plans of a graph, without making their programs.

Operations that are alike use memory alike (`memory_use`). A plan puts the uses of its operations one after
the other (`placed_uses`).

Guarantees: the buffers are those of `lower`, in the same order, so the arenas are those of `plan_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...dataflow.graph import Graph
from ...programs.memory import MemoryFigures
from ...support.gc_pause import gc_paused
from ..plans.plan import Plan
from .known_uses import KnownUses, TouchedTensors
from .placed_uses import PlacedUses


class Arenas:
    """The arenas of plans of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[int, ...], KnownUses] = {}
        self._last: tuple[Plan, PlacedUses] | None = None
        """The plan that was asked for last, and its uses."""

    @cached_property
    def _touched(self) -> TouchedTensors:
        return TouchedTensors.of(self._graph)

    @gc_paused()
    def largest(self, plan: Plan, withheld: Sequence[int] = ()) -> int:
        """Return the largest arena of the plan's workers, each with the bytes that are withheld from it.

        Raises PlanError if the plan is not for the graph.
        """
        return self._placed(plan).largest_arena(withheld or (0,) * plan.workers)

    @gc_paused()
    def figures(self, plan: Plan) -> MemoryFigures:
        """Return the arenas of all workers, as `plan_memory` finds them, and what they hold.

        Raises PlanError if the plan is not for the graph.
        """
        return self._placed(plan).figures()

    def _placed(self, plan: Plan) -> PlacedUses:
        if self._last is not None and _runs_alike(self._last[0], plan):
            return self._last[1]
        known = self._known.get(plan.factors)
        if known is None:
            known = self._known[plan.factors] = KnownUses(plan.workers, plan.factors)
        placed = PlacedUses(self._touched, known, plan)
        self._last = plan, placed
        return placed


def _runs_alike(plan: Plan, other: Plan) -> bool:
    """Tell whether plans are the same but for what is said about them, such as how long the search took."""
    return (
        plan.factors == other.factors
        and plan.strategies is other.strategies
        and plan.layouts is other.layouts
        and plan.copies is other.copies
        and plan.written_order is other.written_order
    )
