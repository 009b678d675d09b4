"""The recursive search (Tofu, section 5.2): split over the factors of the worker count, largest first.

Every step splits each operation along one index variable and each tensor along one dimension, given all
earlier steps, at the least number of bytes. A step is a factor graph with one variable per decision and
one table per link: given an operation's strategy its tensors are independent, so pairs suffice and the
step's optimum is exact. The steps together need not be optimal, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .elimination import Factor, eliminate
from .lower_bound import first_step_bound
from .network import Network
from .solution import Solution, assigned
from .tables import OperatorChoices, Tables, TensorChoices


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
    plan = Solution(factors, ((),) * len(network.operators), ((),) * len(network.shapes), 0, 0)
    lower_bound = 0
    for step in range(len(factors)):
        operators = [tables.operator(b, s) for b, s in zip(network.operators, plan.strategies, strict=True)]
        tensors = [tables.tensor(s, d) for s, d in zip(network.shapes, plan.dimensions, strict=True)]
        solved = eliminate(*factor_graph(network, tables, operators, tensors))
        if len(factors) == 1:
            lower_bound = solved.optimum
        elif step == 0:
            lower_bound = first_step_bound(network, tables, operators, tensors, solved.optimum)
        plan = assigned(
            factors,
            operators,
            tensors,
            solved.assignment,
            cost_bytes=solved.optimum,
            lower_bound_bytes=lower_bound,
        )
    return plan


def factor_graph(
    network: Network,
    tables: Tables,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
) -> tuple[list[int], list[Factor]]:
    """Domains and factors of the choices: a variable per operator, then one per tensor."""
    count = len(operators)
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    factors = [
        Factor(
            (link.operator, count + link.tensor),
            tables.bytes(operators[link.operator], tensors[link.tensor], link.source, link.weight),
        )
        for link in network.links
    ]
    return domains, factors
