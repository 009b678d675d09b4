"""The recursive search (Tofu, section 5.2): split over the factors of the worker count, largest first.

Every step splits each operation along one index variable and each tensor along one dimension, given all
earlier steps, at the least number of bytes. A step is a factor graph with one variable per decision and
one table per link: given an operation's strategy its tensors are independent, so pairs suffice and the
step's optimum is exact unless the graph is too wide, which the plan then says. The steps together need not
be optimal, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts.choices import OperatorChoices, TensorChoices
from ..plans.unproven import too_wide
from ..problem.candidates import Tables
from ..problem.factor_graph import factor_graph, next_choices, nothing_split, steps_of
from ..problem.lower_bound import first_step_bound
from ..problem.problem import Problem
from ..problem.solution import Solution, assigned
from ..solvers.elimination import Factor
from ..solvers.semiring import MIN_PLUS, Arithmetic
from ..solvers.solve import Optimum, least_cost


def recursive(problem: Problem, workers: int) -> Solution:
    """Solve one step after the other, each exactly where it is not too wide."""
    factors = steps_of(problem, workers)
    tables = Tables(factors)
    arithmetic = Arithmetic(MIN_PLUS)
    plan = nothing_split(problem, factors)
    for step in range(len(factors)):
        operators, tensors = next_choices(problem, tables, plan)
        domains, graph = factor_graph(problem, tables, operators, tensors)
        solved = least_cost(domains, graph, arithmetic)
        bound = plan.lower_bound_bytes
        if step == 0 and problem.objective is None:
            bound = _bound(problem, operators, tensors, graph, solved.lower_bound, arithmetic, len(factors))
        plan = next_plan(problem, plan, step, operators, tensors, solved, bound)
    return plan


def next_plan(
    problem: Problem,
    plan: Solution,
    step: int,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    solved: Optimum,
    bound: int = 0,
) -> Solution:
    """The plan after `step`, whose problem is solved; `bound` is a lower bound for every plan."""
    unproven = plan.unproven
    if solved.too_wide is not None:
        proven = solved.lower_bound - plan.cost_bytes if problem.objective is None else None
        unproven += (too_wide(step, solved.too_wide, proven),)
    return assigned(
        plan.factors,
        operators,
        tensors,
        solved.assignment,
        cost_bytes=solved.cost,
        lower_bound_bytes=bound,
        unproven=unproven,
    )


def recursion_bound(problem: Problem, factors: tuple[int, ...]) -> int:
    """The lower bound for every plan that `recursive` could make, from the first step alone."""
    if not factors:
        return 0
    tables = Tables(factors)
    operators, tensors = next_choices(problem, tables, nothing_split(problem, factors))
    domains, graph = factor_graph(problem, tables, operators, tensors)
    arithmetic = Arithmetic(MIN_PLUS)
    least = least_cost(domains, graph, arithmetic).lower_bound
    return _bound(problem, operators, tensors, graph, least, arithmetic, len(factors))


def _bound(
    problem: Problem,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    graph: Sequence[Factor],
    least: int,
    arithmetic: Arithmetic,
    steps: int,
) -> int:
    """The bound from what is proven of the first step; just that where it is the only one."""
    if steps == 1:
        return least
    return first_step_bound(problem, operators, tensors, graph, least, arithmetic)
