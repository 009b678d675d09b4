"""Read from plans what each class of a problem chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..layouts.choices import OperatorChoices, TensorChoices, operator_choices, tensor_choices
from ..layouts.step_split import Dimensions, Strategies
from ..plans.plan import Plan
from .problem import Problem

Choices = tuple[Sequence[Strategies], Sequence[Dimensions]]
"""The strategies and layouts of all classes."""


def choices_of(problem: Problem, plan: Plan) -> Choices:
    """Return the strategies and layouts by class of a plan in steps."""
    graph = problem.graph
    operations = dict(zip(problem.operation_class, graph.operations, strict=True))
    names = {number: tensor.name for tensor, number in zip(graph.tensors, problem.tensor_class, strict=True)}
    read = [
        plan.copies[names[n]][0].form
        if n in problem.fed and names[n] in plan.copies
        else plan.layouts[names[n]].form
        for n in range(len(problem.shapes))
    ]
    return (
        [cast(Strategies, plan.strategies[operations[n].name]) for n in range(len(problem.operators))],
        [cast(Dimensions, form) for form in read],
    )


def copies_of(problem: Problem, plan: Plan) -> dict[int, Dimensions]:
    """Return the copies by class of a plan in steps, of tensors that may have one."""
    found = {}
    for tensor, number in zip(problem.graph.tensors, problem.tensor_class, strict=True):
        if number in problem.copied and tensor.name in plan.copies:
            found[number] = cast(Dimensions, plan.copies[tensor.name][0].form)
    return found


def choices_made(
    problem: Problem, factors: tuple[int, ...], fitting: Sequence[Choices]
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return the choices of every class that some of these make; equal ones are one object."""
    strategies = [tuple(dict.fromkeys(own)) for own in zip(*[each[0] for each in fitting], strict=True)]
    dimensions = [tuple(dict.fromkeys(own)) for own in zip(*[each[1] for each in fitting], strict=True)]
    stops = [number in problem.stops for number in range(len(problem.shapes))]
    operators = list(zip(problem.operators, strategies, strict=True))
    tensors = list(zip(problem.shapes, dimensions, stops, strict=True))
    of_operators = {key: operator_choices(*key, factors) for key in dict.fromkeys(operators)}
    of_tensors = {key: tensor_choices(*key[:2], factors, key[2]) for key in dict.fromkeys(tensors)}
    return [of_operators[key] for key in operators], [of_tensors[key] for key in tensors]
