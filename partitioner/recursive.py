"""The recursive search (Tofu, section 5.2): split over the factors of the worker count, largest first.

Every step splits each operation along one index variable and each tensor along one dimension, given all
earlier steps, at the least number of bytes. A step is a factor graph with one variable per decision and
one table per link: given an operation's strategy its tensors are independent, so pairs suffice and the
step's optimum is exact unless the graph is too wide, which the plan then says. The steps together need not
be optimal, unless there is only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .arithmetic import MIN_PLUS, Arithmetic
from .cost import Counts
from .elimination import Factor
from .lower_bound import first_step_bound
from .network import Network, Source
from .optimum import Optimum, least_cost
from .solution import Solution, assigned, too_wide
from .tables import (
    KeepDimensions,
    KeepVariables,
    OperatorChoices,
    Tables,
    TensorChoices,
    every_dimension,
    every_variable,
)


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


def steps_of(network: Network, workers: int) -> tuple[int, ...]:
    """The factors over which a search splits its workers."""
    return prime_factors(workers) if network.factors is None else network.factors


def recursive(network: Network, workers: int) -> Solution:
    """Solve one step after the other, each exactly where it is not too wide."""
    factors = steps_of(network, workers)
    tables = Tables(factors)
    arithmetic = Arithmetic(MIN_PLUS)
    plan = nothing_split(network, factors)
    for step in range(len(factors)):
        operators, tensors = next_choices(network, tables, plan)
        domains, graph = factor_graph(network, tables, operators, tensors)
        solved = least_cost(domains, graph, arithmetic)
        bound = plan.lower_bound_bytes
        if step == 0 and network.objective is None:
            bound = _bound(network, operators, tensors, graph, solved.lower_bound, arithmetic, len(factors))
        plan = next_plan(network, plan, step, operators, tensors, solved, bound)
    return plan


def next_plan(
    network: Network,
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
        proven = solved.lower_bound - plan.cost_bytes if network.objective is None else None
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


def recursion_bound(network: Network, factors: tuple[int, ...]) -> int:
    """The lower bound for every plan that `recursive` could make, from the first step alone."""
    if not factors:
        return 0
    tables = Tables(factors)
    operators, tensors = next_choices(network, tables, nothing_split(network, factors))
    domains, graph = factor_graph(network, tables, operators, tensors)
    arithmetic = Arithmetic(MIN_PLUS)
    least = least_cost(domains, graph, arithmetic).lower_bound
    return _bound(network, operators, tensors, graph, least, arithmetic, len(factors))


def _bound(
    network: Network,
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
    return first_step_bound(network, operators, tensors, graph, least, arithmetic)


def nothing_split(network: Network, factors: tuple[int, ...]) -> Solution:
    """The plan before the first step."""
    return Solution(factors, ((),) * len(network.operators), ((),) * len(network.shapes), 0, 0)


def next_choices(
    network: Network,
    tables: Tables,
    plan: Solution,
    keep_variables: Callable[[int], KeepVariables] = lambda operator: every_variable,
    keep_dimensions: Callable[[int], KeepDimensions] = lambda tensor: every_dimension,
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """The choices of the step after those that a plan has made, of those that a method keeps.

    Methods say by class what they consider; the network's restrictions come first.
    """
    allowed = network.restrictions
    operators = [
        tables.operator(bound, sequence, allowed.variables(number, sequence, keep_variables(number)))
        for number, (bound, sequence) in enumerate(zip(network.operators, plan.strategies, strict=True))
    ]
    tensors = [
        tables.tensor(shape, sequence, allowed.dimensions(number, shape, sequence, keep_dimensions(number)))
        for number, (shape, sequence) in enumerate(zip(network.shapes, plan.dimensions, strict=True))
    ]
    return operators, tensors


Pricing = Callable[[OperatorChoices, TensorChoices, Source, int], Counts]
"""From the choices of an operator and a tensor, with the source and weight of a link between them, to its
table: what every pair of choices costs."""


def pricing(network: Network, tables: Tables) -> Pricing:
    """What the search minimises: bytes, or what the network's objective says."""
    return tables.bytes if network.objective is None else network.objective.table


def factor_graph(
    network: Network,
    tables: Tables,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
) -> tuple[list[int], list[Factor]]:
    """Domains and factors of the choices: a variable per operator, then one per tensor.

    Choices that the network's restrictions do not allow cost more than any that they do.
    """
    count = len(operators)
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    cost = pricing(network, tables)
    factors = [
        Factor((operator, count + tensor), cost(operators[operator], tensors[tensor], source, weight))
        for operator, tensor, source, weight in network.links
    ]
    restrictions = network.restrictions
    if restrictions:
        chosen = [c.sequences for c in operators], [c.sequences for c in tensors]
        factors = restrictions.priced(factors, *chosen)
    return domains, factors
