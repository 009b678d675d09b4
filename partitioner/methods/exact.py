"""Search all steps together: a choice is a sequence over all steps, and the plan found is the best one.

    minimise  cost after the last step    over all sequences x[v] of every class v (`problem.sequences`)

The search starts from the refined plan and prunes sequences that no best plan needs. If the tables of the
rest stay small, elimination solves it at once. Otherwise the search continues until the gap between plan and
bound is closed or the limit of work is reached, see `solvers.anytime`. If a gap is left, the moves of
`refine` go on from the plan that was found. If a class has too many sequences, the steps are first searched
as `many_steps` describes; if that leaves a gap and the tables are not too large, the search over all
sequences goes on from there. Implemented in: `problem.factor_graph.joint_choices` (the sequences), `_solve`,
`solvers.dominance`, `solvers.anytime`, `refine.moved`.

Guarantees: no plan of the recursion costs less than `lower_bound`.
"""

from __future__ import annotations

from dataclasses import replace

from ..layouts.choices import splittable
from ..plans.cost import Cost
from ..plans.unproven import too_wide, unbounded
from ..problem.factor_graph import factor_graph, joint_choices
from ..problem.lightest import lightest
from ..problem.problem import Problem
from ..problem.sequences import all_sequences, sequence_count
from ..problem.solution import Solution, assigned, chosen
from ..solvers.anytime import Report, close_gap, unheard
from ..solvers.dominance import Dominance
from ..solvers.elimination import eliminate
from ..solvers.errors import WidthError
from .many_steps import many_steps
from .refine import moved, refine

SEQUENCE_LIMIT = 512
"""If an operator or a tensor has more sequences, their order is left open first."""

PAIR_LIMIT = 1 << 13
"""So it is if a tensor has more pairs of a home and a copy."""

JOINT_ENTRIES = 1 << 26
"""All sequences are then searched only if the different tables have no more entries together. If activations
may have copies and the tables have more, the refined plan is returned.
"""

SMALL_GAP = 0.01
"""They are not if the bound leaves less than this part of the cost open."""

TABLE_LIMIT = 1 << 22
"""The largest number of entries of a table that the joint elimination may combine."""


def exact(problem: Problem, workers: int, report: Report = unheard) -> Solution:
    """Return the best plan of all that recursion can make, proven so if `lower_bound` equals the cost.

    `report` is called with the cost and the bound, in the unit of the objective, whenever one improves.
    """
    plan = refine(problem, workers)
    report(plan.cost.value, plan.lower_bound.value)
    if plan.lower_bound == plan.cost:
        return plan
    counts = _counts(problem, plan.factors)
    if problem.activations and _entries(problem, counts) > JOINT_ENTRIES:
        return replace(plan, unproven=(*plan.unproven, too_wide(None, _entries(problem, counts), None)))
    copied = {len(problem.operators) + number for number in problem.copied}
    if all(n <= (PAIR_LIMIT if v in copied else SEQUENCE_LIMIT) for v, n in enumerate(counts)):
        return _solve(problem, plan, report)
    plan = many_steps(problem, plan, report)
    gap = plan.cost.value - plan.lower_bound.value
    if gap <= SMALL_GAP * plan.cost.value or _entries(problem, counts) > JOINT_ENTRIES:
        return plan
    return _solve(problem, plan, report)


def _counts(problem: Problem, factors: tuple[int, ...]) -> list[int]:
    """Return an upper bound on the number of sequences of every class: operators, then tensors."""
    of_operators = [
        sequence_count(splittable(bound), factors, number in problem.repeats, number in problem.reads_terms)
        for number, bound in enumerate(problem.operators)
    ]
    of_tensors = [
        sequence_count(
            dict(enumerate(shape)), factors, problem.may_replicate(number), number in problem.terms
        )
        * (sequence_count(dict(enumerate(shape)), factors, True) if number in problem.copied else 1)
        for number, shape in enumerate(problem.shapes)
    ]
    return of_operators + of_tensors


def _entries(problem: Problem, counts: list[int]) -> int:
    """Return about how many entries the tables over all sequences have; equal tables count once."""
    first = len(problem.operators)
    sizes: dict[tuple[object, ...], int] = {}
    for link in problem.links:
        table = problem.operators[link.operator], problem.shapes[link.tensor], link.use, link.weight
        sizes[table] = counts[link.operator] * counts[first + link.tensor]
    return sum(sizes.values())


def _solve(problem: Problem, plan: Solution, report: Report) -> Solution:
    """Return the best plan, or one at most as costly as `plan` with a better bound."""
    operators, tensors = joint_choices(problem, plan.factors, all_sequences)
    pruned = Dominance().prune(*factor_graph(problem, operators, tensors))
    try:
        solved = eliminate(pruned.domains, pruned.cost_tables, table_limit=TABLE_LIMIT)
    except WidthError:
        known = pruned.replaced(chosen(plan, operators, tensors))
        gap = close_gap(pruned.domains, pruned.cost_tables, plan.cost.value, report, known=known)
        cost, bound, assignment = gap.cost, gap.bound, gap.assignment
    else:
        cost, bound, assignment = solved.optimum, solved.optimum, solved.assignment
        report(cost, bound)
    bound = max(bound, plan.lower_bound.value)
    if assignment is not None:
        plan = assigned(
            plan.factors,
            operators,
            tensors,
            pruned.original(assignment),
            cost=Cost(cost, plan.cost.unit),
            unproven=plan.unproven,
        )
    plan = replace(plan, lower_bound=Cost(bound, plan.cost.unit))
    if bound < plan.cost.value and assignment is not None:
        plan = moved(problem, plan)
        report(plan.cost.value, bound)
    unproven = () if bound == plan.cost.value else unbounded(plan.unproven)
    return lightest(problem, replace(plan, unproven=unproven))
