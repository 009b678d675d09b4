"""Search recursively (Tofu, section 5.2): split over the factors of the worker count, largest first.

    for each step i:    minimise  cost after step i   over the choices of step i, given those of steps < i
    constraints         a class replicates only if nothing is left that the step could split

A step is a factor graph with one variable per decision and one table per link. Given an operation's strategy,
its tensors are independent, so tables over pairs suffice. Implemented in: `problem.factor_graph.next_choices`
(the choices of a step), `factor_graph` (its tables), `solvers.solve.least_cost` (the minimum),
`recursion_bound` (a bound for all steps together).

Guarantees: the choices of a step are optimal given the earlier ones, unless the graph is too wide; the plan
then names the step as unproven. Several steps together need not be optimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts.choices import OperatorChoices, TensorChoices
from ..plans.unproven import too_wide
from ..problem.factor_graph import factor_graph, next_choices, nothing_split, steps_of
from ..problem.problem import FirstStep, Problem
from ..problem.solution import Solution, assigned
from ..solvers.min_plus import MIN_PLUS
from ..solvers.semiring import TableArithmetic
from ..solvers.solve import NO_PROOF, STEP_EFFORT, Optimum, least_cost


def recursive(problem: Problem, workers: int) -> Solution:
    """Solve one step after the other, each exactly if it is not too wide."""
    factors = steps_of(problem, workers)
    tables = problem.choices(factors)
    arithmetic = TableArithmetic(MIN_PLUS)
    effort = STEP_EFFORT if problem.bounded else NO_PROOF
    plan = nothing_split(problem, factors)
    for step in range(len(factors)):
        operators, tensors = next_choices(problem, tables, plan)
        domains, graph = factor_graph(problem, operators, tensors)
        solved = least_cost(domains, graph, arithmetic, effort)
        bound = plan.lower_bound.value
        if step == 0:
            first = FirstStep(operators, tensors, graph, solved.proven, arithmetic, len(factors))
            bound = problem.bound(first)
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
    """Return the plan after `step`, whose problem is solved; `bound` is a lower bound for every plan."""
    unproven = plan.unproven
    if solved.too_wide is not None:
        proven = problem.cost(solved.lower_bound - plan.cost.value)
        unproven += (too_wide(step, solved.too_wide, proven),)
    return assigned(
        plan.factors,
        operators,
        tensors,
        solved.assignment,
        cost=problem.cost(solved.cost),
        lower_bound=bound,
        unproven=unproven,
    )


def recursion_bound(problem: Problem, factors: tuple[int, ...]) -> int:
    """Return the lower bound for every plan that `recursive` could make, from the first step alone."""
    if not factors:
        return 0
    tables = problem.choices(factors)
    operators, tensors = next_choices(problem, tables, nothing_split(problem, factors))
    domains, graph = factor_graph(problem, operators, tensors)
    arithmetic = TableArithmetic(MIN_PLUS)
    first = FirstStep(
        operators,
        tensors,
        graph,
        lambda: least_cost(domains, graph, arithmetic, STEP_EFFORT).lower_bound,
        arithmetic,
        len(factors),
    )
    return problem.bound(first)
