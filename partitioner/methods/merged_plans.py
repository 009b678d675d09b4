"""Search a plan for a graph and for the one with merged operations, and take the better one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...dataflow.graph import Graph
from ...dataflow.merging.merged import merged
from .fitting import Fitting
from .ladder import MORE_BY_DEFAULT
from .limit import SameLimit


def better_merged(graph: Graph, limit: SameLimit, search: Callable[[Graph], Fitting]) -> Fitting:
    """Return the plan of the merged graph if it costs no more than that of the graph and fits, else that.

    Plans of methods that simulate cost the time of an iteration. Without a limit, a plan fits if its arenas
    are at most 15% larger, the default of searches.
    """
    plain, changed = search(graph), merged(graph)
    if changed is graph:
        return plain
    found = search(changed)

    def fits(each: Fitting) -> bool:
        match limit:
            case "unlimited":
                return True
            case None:
                return each.arena_bytes <= plain.arena_bytes * (1 + MORE_BY_DEFAULT)
            case _:
                return each.peak_bytes <= limit

    if fits(found) and (found.cost <= plain.cost or not fits(plain)):
        return replace(found, plan=replace(found.plan, merged=True))
    return plain
