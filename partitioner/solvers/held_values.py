"""Improve an assignment of a wide problem: hold the values of few variables, and choose all others at once.

    given     a pairwise problem, and an assignment x
    a round   H, variables without which the problem is narrow enough to be eliminated;
              the best assignment that agrees with x on H
    wanted    the assignment after some rounds, which hold different variables

Elimination takes the variable that leaves the smallest table, as always. Where even that table would be too
large, the variable with the most neighbours is held, and the table loses an axis. Variables that were held
before are held last, so that what one round holds the next one may change. Implemented in: `held` (the
variables of a round), `improved` (the rounds), `elimination.eliminate` (the best assignment).

Guarantees: no round raises the cost, because x agrees with itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import prod

import numpy as np

from .elimination import CostTable, eliminate
from .min_plus import MIN_PLUS
from .pairwise import Pairwise
from .semiring import TableArithmetic

ROUNDS = 16
"""The largest number of rounds."""

PATIENCE = 2
"""The number of rounds in a row that may gain nothing."""

TABLE_LIMIT = 1 << 18
"""The largest number of entries of a table that an elimination may combine."""


def improved(problem: Pairwise, assignment: Sequence[int]) -> tuple[int, ...]:
    """Return the best assignment that rounds find from a given one."""
    neighbours = problem.neighbours()
    as_integers = {id(table): table.astype(np.int64) for table in (*problem.tables.values(), *problem.unary)}
    tables = [CostTable(pair, as_integers[id(table)]) for pair, table in problem.tables.items()]
    tables += [CostTable((v,), as_integers[id(costs)]) for v, costs in enumerate(problem.unary)]
    times, arithmetic = [0] * len(problem.domains), TableArithmetic(MIN_PLUS)
    best, cost, idle = tuple(assignment), problem.cost(assignment), 0
    for _ in range(ROUNDS):
        kept = held(neighbours, problem.domains, times)
        for variable in kept:
            times[variable] += 1
        found = eliminate(
            problem.domains,
            tables,
            evidence={v: best[v] for v in kept},
            arithmetic=arithmetic,
            table_limit=TABLE_LIMIT,
        )
        idle = 0 if problem.cost(found.assignment) < cost else idle + 1
        best, cost = found.assignment, problem.cost(found.assignment)
        if not kept or idle == PATIENCE:
            break
    return best


def held(neighbours: Sequence[Sequence[int]], domains: Sequence[int], times: Sequence[int]) -> list[int]:
    """Return variables to hold, those that were held the fewest `times` and touch most others first.

    Elimination orders the variables again without them, so the order is followed until nothing more is held.
    """
    found: list[int] = []
    while True:
        more = _held(neighbours, domains, times, found)
        if not more:
            return found
        found += more


def _held(
    neighbours: Sequence[Sequence[int]], domains: Sequence[int], times: Sequence[int], gone: Sequence[int]
) -> list[int]:
    """Return variables to hold in the order of elimination, in which some are `gone` from the start."""
    left = {v for v, domain in enumerate(domains) if domain > 1} - set(gone)
    around = [{other for other in others if other in left} for others in neighbours]
    sizes = [prod([domains[other] for other in others]) for others in around]
    heap = [(sizes[v], v) for v in left]
    heapq.heapify(heap)
    found: list[int] = []
    while left:
        size, variable = heapq.heappop(heap)
        if variable not in left or size != sizes[variable]:
            continue
        joins = size * domains[variable] <= TABLE_LIMIT
        if not joins:
            heapq.heappush(heap, (size, variable))
            variable = min(left, key=lambda v: (times[v], -len(around[v]), v))
            found.append(variable)
        left.discard(variable)
        for other in around[variable]:
            around[other].discard(variable)
            sizes[other] //= domains[variable]
            if joins:
                new = around[variable] - around[other] - {other}
                around[other] |= new
                sizes[other] *= prod([domains[third] for third in new])
            heapq.heappush(heap, (sizes[other], other))
    return found
