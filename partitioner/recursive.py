"""The recursive search (Tofu, section 5.2): split over the factors of the worker count, largest first.

Every step splits each operation along one index variable and each tensor along one dimension, given all
earlier steps, at the least number of bytes. A step is a factor graph with one variable per decision and
one table per link: given an operation's strategy its tensors are independent, so pairs suffice and the
step's optimum is exact. The steps together need not be optimal, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .elimination import Factor, eliminate
from .lower_bound import first_step_bound
from .network import Network
from .solution import Solution
from .tables import Dimensions, OperatorChoices, Strategies, Tables, TensorChoices


def prime_factors(workers: int) -> tuple[int, ...]:
    """`workers` as a product of primes, largest first: 12 is (3, 2, 2); 1 is empty."""
    factors: list[int] = []
    divisor = 2
    while divisor * divisor <= workers:
        while workers % divisor == 0:
            factors.append(divisor)
            workers //= divisor
        divisor += 1
    if workers > 1:
        factors.append(workers)
    return tuple(reversed(factors))


def recursive(network: Network, workers: int) -> Solution:
    """Solve one step after the other, each exactly."""
    factors = prime_factors(workers)
    tables = Tables(factors)
    strategies: list[Strategies] = [()] * len(network.operators)
    dimensions: list[Dimensions] = [()] * len(network.shapes)
    totals = [0]
    lower_bound = 0
    for step in range(len(factors)):
        operators = [tables.operator(b, s) for b, s in zip(network.operators, strategies, strict=True)]
        tensors = [tables.tensor(s, d) for s, d in zip(network.shapes, dimensions, strict=True)]
        total, assignment = solve_step(network, tables, operators, tensors)
        totals.append(total)
        if len(factors) == 1:
            lower_bound = total
        elif step == 0:
            lower_bound = first_step_bound(network, tables, operators, tensors, total)
        chosen = iter(assignment)
        strategies = [choices.sequences[next(chosen)] for choices in operators]
        dimensions = [choices.sequences[next(chosen)] for choices in tensors]
    return Solution(
        factors=factors,
        strategies=tuple(strategies),
        dimensions=tuple(dimensions),
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=lower_bound,
    )


def solve_step(
    network: Network,
    tables: Tables,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
) -> tuple[int, tuple[int, ...]]:
    """The least bytes over all choices, counted from the first step on, and a choice that attains them.

    The assignment lists operators, then tensors.
    """
    count = len(operators)
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    factors = (
        Factor(
            (link.operator, count + link.tensor),
            tables.bytes(operators[link.operator], tensors[link.tensor], link.source, link.weight),
        )
        for link in network.links
    )
    solved = eliminate(domains, factors)
    return solved.optimum, solved.assignment
