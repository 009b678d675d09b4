"""Read the state of a walk from a plan: which decisions are configurations, and which may not change.

A decision that no configuration describes does what the plan says until a move changes it. A tensor that is
held in terms is read term by term. If several decisions touch it, they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....programs.parts import Task
from ...layouts.partial import is_partial
from ...plans.plan import Plan
from ..flexflow.configurations import Configuration
from ..flexflow.soap import Decision, Kind, Soap
from ..flexflow.strategy import Strategies
from ..flexflow.walk import State


def state_of(strategies: Strategies, plan: Plan) -> State:
    """Return the configuration of each decision that has one in a plan."""
    soap, tasks = strategies.soap, plan.of(strategies.soap.graph).tasks
    names = [operation.name for operation in soap.graph.operations]
    found: list[Configuration | None] = []
    for number, decision in enumerate(soap.decisions):
        configuration = _configuration(soap, decision, tasks[names[decision.operations[0]]])
        if configuration is not None:
            made = strategies.change(number, configuration).tasks
            if any(_parts(made[name]) != _parts(tasks[name]) for name in made):
                configuration = None
        found.append(configuration)
    return tuple(found)


def fixed_decisions(soap: Soap, plan: Plan) -> frozenset[int]:
    """Return the decisions that share terms with others."""
    touching: dict[int, set[int]] = {}
    for operation in soap.graph.operations:
        for tensor in (*operation.inputs, *operation.outputs):
            touching.setdefault(tensor, set()).add(soap.decision_of[operation.index])
    fixed: set[int] = set()
    for number, decisions in touching.items():
        name = soap.graph.tensors[number].name
        several = len(decisions) > 1 and is_partial(plan.layouts[name].form)
        if several or any(is_partial(copy.form) for copy in plan.copies.get(name, ())):
            fixed |= decisions
    return frozenset(fixed)


def _parts(tasks: Sequence[Task]) -> set[tuple[int, object]]:
    return {(task.worker, task.box) for task in tasks}


def _configuration(soap: Soap, decision: Decision, tasks: Sequence[Task]) -> Configuration | None:
    """Return the configuration in which the first operation of a decision has as many tasks; None if none."""
    bound = soap.graph.operations[decision.operations[0]].bound
    axes = [
        bound.variables.index(label) if isinstance(label := dimension.labels[0], str) else None
        for dimension in decision.dimensions
    ]
    degrees = [1 if axis is None else len({task.box[axis] for task in tasks}) for axis in axes]
    for place, dimension in enumerate(decision.dimensions):
        if dimension.kind is Kind.REPLICA:
            degrees[place] = len(tasks) // prod(degrees)
    if prod(degrees) != len(tasks) or soap.workers % len(tasks):
        return None
    in_order = sorted(tasks, key=lambda task: [task.box[axis] for axis in axes if axis is not None])
    return Configuration(tuple(degrees), tuple(task.worker for task in in_order))
