"""Recombine plans: the frontier of time and memory over the choices that they make.

    variables    for every class of operations and of tensors, one of the choices that some plan makes for it
    objectives   time(x)    the sum of the objective's tables, such as `step-time`
                 memory(x)  the bytes live on all workers while one operation computes, see `LiveBytes`
    result       plans at points of the frontier of both sums (TensorOpt, definition 1)

If the classes have few choices, all are considered. The frontier is that of these sums: the time of a
simulated iteration, and arenas, are to be found for its plans. If tables have too many points, the result is
the points that are least in a weighted sum of both. A plan that is best by simulated times may have sums that
are not. So if there are few plans in all, the result is every plan. Implemented in: `recombined` (plans),
`_assignments` (all of them, or `solvers.frontier`, or `solvers.supported`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

from ..layouts.choices import OperatorChoices, TensorChoices, splittable
from ..plans.cost import Cost
from ..plans.plan import Plan
from ..problem.factor_graph import factor_graph, joint_choices
from ..problem.live_bytes import LiveBytes
from ..problem.plan_choices import Choices, choices_made, choices_of
from ..problem.problem import Problem
from ..problem.sequences import all_sequences, sequence_count
from ..problem.solution import assigned
from ..problem.unpriced import Unpriced
from ..solvers.elimination import CostTable
from ..solvers.errors import WidthError
from ..solvers.frontier import least_frontier
from ..solvers.pair_table import PairTable
from ..solvers.supported import supports
from .method import Method
from .search import plan_of

MOST = 64
"""The number of points of a frontier that are yielded at most, and of weighted sums if it has more."""

FEW = 24
"""All choices are considered if no class has more."""

EVERY = 1 << 10
"""All plans are yielded if there are no more of these choices."""

POINTS_LIMIT = 1 << 10
"""The largest number of points of a table of which the whole frontier is found."""

TABLE_LIMIT = 1 << 22
"""The largest number of entries of a table of weighted sums."""


def recombined(problem: Problem, workers: int, plans: Sequence[Plan], method: Method) -> Iterator[Plan]:
    """Yield plans of a problem at the frontier of its objective and live bytes, given plans in its steps.

    Without such plans, for one worker, or if tables are too large, there are none.
    """
    factors = problem.objective.factors(workers)
    fitting = [choices_of(problem, plan) for plan in plans if plan.in_steps and plan.factors == factors]
    if not fitting or not factors:
        return
    if most_choices(problem, factors) <= FEW:
        operators, tensors = joint_choices(problem, factors, all_sequences)
    else:
        operators, tensors = choices_made(problem, factors, fitting)
    for time, assignment in _assignments(problem, workers, operators, tensors, fitting[0]):
        cost = Cost(time, problem.objective.unit)
        yield plan_of(problem, assigned(factors, operators, tensors, assignment, cost=cost), workers, method)


def _assignments(
    problem: Problem,
    workers: int,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    typical: Choices,
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield times and assignments: all if they are few, or else those at the frontier.

    If the frontier has too many points, those that are least in a weighted sum are yielded. Memory is that of
    the operation at which `typical` choices hold most.
    """
    domains, times = factor_graph(problem, operators, tensors)
    if prod(domains) <= EVERY:
        for each in product(*map(range, domains)):
            yield sum(int(table[tuple([each[v] for v in scope])]) for scope, table in times), each
        return
    live, factors = LiveBytes.of(problem), problem.objective.factors(workers)
    fullest, _ = live.fullest_of(*typical, factors)
    held = replace(
        problem,
        objective=Unpriced(factors),
        prices=live.prices(Fraction(1)),
        buffer_prices=live.buffer_prices({fullest: Fraction(1)}, workers),
    )
    pairs = with_memory(times, factor_graph(held, operators, tensors)[1])
    with suppress(WidthError):
        found = least_frontier(domains, pairs, table_limit=POINTS_LIMIT)
        if len(found.points) <= MOST:
            for point, (time, _) in enumerate(found.points.tolist()):
                yield time, found.assignment(point)
            return
    with suppress(WidthError):
        known = supports(domains, pairs, MOST, TABLE_LIMIT)
        yield from ((time, assignment) for (time, _), assignment in known.assignments.items())


def with_memory(times: Sequence[CostTable], memory: Sequence[CostTable]) -> list[PairTable]:
    """Join the tables of two sums over the same choices."""
    return [PairTable(scope, time, bytes_) for (scope, time), (_, bytes_) in zip(times, memory, strict=True)]


def most_choices(problem: Problem, factors: tuple[int, ...]) -> int:
    """Return the number of choices of the class that has most."""
    return max(
        *(sequence_count(splittable(bound), factors) for bound in problem.operators),
        *(
            sequence_count(dict(enumerate(shape)), factors, problem.may_replicate(number))
            for number, shape in enumerate(problem.shapes)
        ),
    )
