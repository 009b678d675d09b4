"""Read from a plan what each class of a problem chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..layouts.step_split import Dimensions, Strategies
from ..plans.plan import Plan
from .problem import Problem

Choices = tuple[Sequence[Strategies], Sequence[Dimensions]]
"""The strategies and layouts of all classes."""


def choices_of(problem: Problem, plan: Plan) -> Choices:
    """Return the strategies and layouts by class of a plan in steps."""
    graph = problem.graph
    operations = dict(zip(problem.operation_class, graph.operations, strict=True))
    tensors = dict(zip(problem.tensor_class, graph.tensors, strict=True))
    return (
        [cast(Strategies, plan.strategies[operations[n].name]) for n in range(len(problem.operators))],
        [cast(Dimensions, plan.layouts[tensors[n].name].form) for n in range(len(problem.shapes))],
    )
