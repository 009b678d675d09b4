"""The gradients of a group, which wait for each other on their way to all workers, or to servers.

A gradient that something besides its update reads cannot wait, so it keeps its place. A variable in several
parts belongs to the group of the first part that is in one.
"""

from __future__ import annotations

from ....dataflow.graph import Graph, Role
from .strategy import SyncStrategy
from .variables import find_variables


def gradient_groups(graph: Graph, strategy: SyncStrategy) -> list[list[int]]:
    """Return for each group the gradients that can wait for each other, by number."""
    variables = find_variables(graph)
    updates = {update.index for each in variables for update in each.updates}
    used = {t for each in graph.operations if each.index not in updates for t in each.inputs}
    numbers = {tensor.name: tensor.index for tensor in graph.tensors}
    found: dict[int, list[int]] = {}
    for variable in variables:
        group = strategy.variables[variable.tensor.name].group
        if group is not None:
            mine = (numbers[name] for name in variable.together)
            found.setdefault(group, []).extend(
                t for t in mine if graph.tensors[t].role is Role.GRADIENT and t not in used
            )
    return [found[group] for group in sorted(found)]


def collected_together(graph: Graph, strategy: SyncStrategy) -> tuple[tuple[str, ...], ...]:
    """Return the names of the gradients of each group that has several."""
    groups = (tuple(graph.tensors[t].name for t in group) for group in gradient_groups(graph, strategy))
    return tuple(group for group in groups if len(group) > 1)
