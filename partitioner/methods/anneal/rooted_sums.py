"""Hold each small sum on one worker, so that it takes few messages.

If all workers hold a tensor whose terms are on all of them, each of k workers gets a message from every other
one. With one holder, k - 1 messages come in and k - 1 leave, or fewer if groups sum first. A message of a
small tensor takes the time of the link's latency, so their number counts, as for the statistics of batch
normalisation. Holders are dealt round, and neighbours in the graph lie in different groups of the machine.
Terms that are read before they are summed stay where they are.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ....dataflow.graph import Graph
from ....machines.machine import Machine
from ...costs.movement import Movements
from ...layouts.forms import Spread
from ...layouts.partial import is_partial
from ...plans.plan import Plan
from .dealt import dealt

MOST_ELEMENTS = 1 << 14
"""Larger tensors stay where they are."""


def with_rooted_sums(graph: Graph, plan: Plan, machine: Machine, movements: Movements) -> Plan:
    """Return a plan in which each small sum has one holder. Its bytes are not counted again.

    `movements` are those of plans with these factors.
    """
    layouts = dict(plan.layouts)
    overwriting: dict[int, list[str]] = {}
    for tensor in graph.tensors:
        overwriting.setdefault(graph.roots[tensor.index], []).append(tensor.name)
    holders, number = dealt(machine.outermost_groups(plan.workers)), 0
    for operation in graph.operations:
        made = movements.operator(operation.bound, plan.strategies[operation.name]).outputs
        for index, regions in zip(operation.outputs, made, strict=True):
            tensor = graph.tensors[index]
            lasts = graph.tensors[graph.roots[index]].role.persistent
            summed = regions.terms > 1 and not is_partial(layouts[tensor.name].form)
            if lasts or not summed or prod(tensor.shape) > MOST_ELEMENTS:
                continue
            home = replace(layouts[tensor.name], form=Spread((), (holders[number % len(holders)],)))
            layouts |= dict.fromkeys(overwriting[graph.roots[index]], home)
            number += 1
    return replace(plan, layouts=layouts, unproven=())
