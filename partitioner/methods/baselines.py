"""The methods that the paper compares with (Tofu, section 7.3).

    variables    one choice per class and step, as in `recursive`, but from fewer choices:
                 all_row         tensors along their first dimension     equal_chop  one label for all steps
                 icml18          no output reduction                     spartan     one tensor after another
    objective    the same cost, counted in the same way

They split all that can be split, and state the lower bound for the recursive plans of the problem's space. A
method that goes beyond that space may find a plan that costs less than this bound. It then states the cost of
its plan as the bound.
Implemented in: a function for each method; `_stepwise` (those that go step by step), `chops` (one label).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from ...analyzer.bind.bound import Bound
from ..layouts.choices import OperatorChoices, TensorChoices
from ..layouts.forms import Partial
from ..layouts.step_split import Dimensions, Strategies
from ..plans.cost import Cost
from ..plans.unproven import too_wide
from ..problem.candidates import KeepDimensions, KeepVariables, Tables, every_dimension, every_variable
from ..problem.factor_graph import factor_graph, joint_choices, next_choices, nothing_split, steps_of
from ..problem.links import Link
from ..problem.problem import Problem
from ..problem.sequences import Label, all_sequences
from ..problem.solution import Solution, assigned
from ..solvers.solve import least_cost
from .recursive import next_plan, recursion_bound


def all_row(problem: Problem, workers: int) -> Solution:
    """Run AllRow-Greedy: split every tensor along its first dimension, every operator as is best for that.

    If the first dimension of a tensor cannot be split further, the next one that can be is split.
    """
    return _stepwise(problem, workers, lambda operator: every_variable, lambda tensor: _first)


def icml18(problem: Problem, workers: int) -> Solution:
    """Run the recursive search without output reduction, which ICML18 does not consider.

    An operator that can only be split with a reduction runs whole on every worker.
    """
    return _stepwise(problem, workers, lambda operator: _concatenated, lambda tensor: every_dimension)


def equal_chop(problem: Problem, workers: int) -> Solution:
    """Run EqualChop: find the best plan that splits every tensor along one dimension, over all workers.

    If no dimension of a tensor has as many values as there are workers, as few dimensions as possible are
    split. If the problem is too wide for elimination, the result is a good plan with a bound, marked
    unproven.
    """
    factors, split = steps_of(problem, workers), replace(problem, replicate=False)
    operators, tensors = chops(split, factors)
    solved = least_cost(*factor_graph(split, operators, tensors))
    plan = assigned(factors, operators, tensors, solved.assignment, cost=problem.cost(solved.cost))
    if solved.too_wide is not None:
        proven = problem.cost(solved.lower_bound)
        plan = replace(plan, unproven=(too_wide(None, solved.too_wide, proven),))
    return _bounded(problem, plan)


def spartan(problem: Problem, workers: int) -> Solution:
    """Run Spartan's heuristic: split the largest tensor first, along the dimension best for its operators.

    The operators that use it come next, each with its best strategy given the tensors chosen so far, then the
    next largest tensor. Tensors are split along one dimension, as in `equal_chop`.
    """
    factors = steps_of(problem, workers)
    operators, tensors = chops(replace(problem, replicate=False), factors)
    cost = problem.objective.table
    of_tensor: list[list[Link]] = [[] for _ in tensors]
    for link in problem.links:
        of_tensor[link.tensor].append(link)
    owed = [problem.alone(number, choices) for number, choices in enumerate(operators)]
    chosen: dict[int, int] = {}
    choice = [0] * len(tensors)
    for tensor in sorted(range(len(tensors)), key=lambda t: -prod(problem.shapes[t])):
        added: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {}
        for link in of_tensor[tensor]:
            table = cost(operators[link.operator], tensors[tensor], link.use, link.weight)
            added[link.operator] = added.get(link.operator, np.int64(0)) + table
        costs = np.zeros(len(tensors[tensor].sequences), np.int64)
        for operator, table in added.items():
            both = owed[operator][:, None] + table
            costs += both[chosen[operator]] if operator in chosen else both.min(axis=0)
        choice[tensor] = int(costs.argmin())
        for operator, table in added.items():
            owed[operator] = owed[operator] + table[:, choice[tensor]]
            chosen.setdefault(operator, int(owed[operator].argmin()))
    assignment = [chosen.get(operator, int(costs.argmin())) for operator, costs in enumerate(owed)]
    total = sum(int(costs[value]) for costs, value in zip(owed, assignment, strict=True))
    return _bounded(
        problem,
        assigned(factors, operators, tensors, [*assignment, *choice], cost=problem.cost(total)),
    )


def chops(problem: Problem, factors: tuple[int, ...]) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return all choices along a single variable or dimension, or along as few as are necessary.

    If the problem's space allows, every tensor may also be replicated over all steps.
    """
    return joint_choices(problem, factors, _fewest)


def _stepwise(
    problem: Problem,
    workers: int,
    keep_variables: Callable[[int], KeepVariables],
    keep_dimensions: Callable[[int], KeepDimensions],
) -> Solution:
    """Run recursion among the variables and dimensions that the functions keep of every class."""
    factors = steps_of(problem, workers)
    tables = Tables(factors)
    plan = nothing_split(problem, factors)
    for step in range(len(factors)):
        operators, tensors = next_choices(problem, tables, plan, keep_variables, keep_dimensions)
        solved = least_cost(*factor_graph(problem, operators, tensors))
        plan = next_plan(problem, plan, step, operators, tensors, solved)
    return _bounded(problem, plan)


def _bounded(problem: Problem, plan: Solution) -> Solution:
    bound = min(recursion_bound(problem, plan.factors), plan.cost.value)
    return replace(plan, lower_bound=Cost(bound, plan.cost.unit))


def _first(fitting: Dimensions) -> Dimensions:
    return fitting[:1]


def _concatenated(bound: Bound, fitting: tuple[str, ...]) -> Strategies:
    return tuple(variable for variable in fitting if bound.kind(variable) == "concat")


def _fewest(
    extents: Mapping[Label, int], factors: tuple[int, ...], replicate: bool, partial: bool
) -> list[tuple[Label | Partial | None, ...]]:
    """Return the sequences with the fewest different labels, and those that split nothing."""
    whole: list[tuple[Label | Partial | None, ...]] = [(None,) * len(factors)] if replicate else []
    whole += [(Partial(),) * len(factors)] if partial else []
    single: list[tuple[Label | Partial | None, ...]] = [
        (label,) * len(factors) for label, extent in extents.items() if extent >= prod(factors)
    ]
    if single:
        return single + whole
    every = all_sequences(extents, factors)
    fewest = min(len(set(sequence)) for sequence in every)
    few = [sequence for sequence in every if len(set(sequence)) == fewest]
    return list(dict.fromkeys(few + whole))
