"""Changes that save no time are taken back, so that a plan moves fewer bytes.

Chains also accept changes that leave the time of an iteration as it is. Changes are taken back in parts: all
of them, or else each half, and so on. A part is taken back if the iteration takes no more time without it.
The result is kept if it takes less time or moves fewer bytes.
Implemented in: `taken_back`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ....dataflow.graph import Graph
from ...plans.plan import Plan
from ...plans.recounted import recounted
from .rewrites import Rewrites, Timed

TRIED = 64
"""The most parts that are tried."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a decision does otherwise than in the plan before."""

    operations: Sequence[str]
    """The names of its operations."""

    tensors: Sequence[str]
    """The names of the tensors whose layouts it decides, those that overwrite others included."""


def taken_back(
    graph: Graph, before: Plan, found: Timed, changes: Sequence[Change], rewrites: Rewrites
) -> Timed:
    """Return a plan that takes no more time than `found`, with fewer changes of `before` and fewer bytes."""
    plan, least = found.plan, found.nanoseconds
    parts = [changes]
    for _ in range(TRIED):
        if not parts:
            break
        part = parts.pop()
        made = _without(plan, before, part)
        taken = rewrites.nanoseconds(made)
        if taken <= least:
            plan, least = made, taken
        elif len(part) > 1:
            middle = len(part) // 2
            parts += [part[:middle], part[middle:]]
    if plan is found.plan:
        return found
    plan = recounted(graph, plan)
    fewer = plan.cost_bytes < found.plan.cost_bytes
    return Timed(least, plan) if least < found.nanoseconds or fewer else found


def _without(plan: Plan, before: Plan, changes: Iterable[Change]) -> Plan:
    """Return a plan without some changes, whose bytes are not counted again."""
    strategies, layouts = dict(plan.strategies), dict(plan.layouts)
    for change in changes:
        strategies.update((name, before.strategies[name]) for name in change.operations)
        layouts.update((name, before.layouts[name]) for name in change.tensors)
    return replace(plan, strategies=strategies, layouts=layouts, unproven=())
