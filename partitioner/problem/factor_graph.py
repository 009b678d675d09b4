"""Build the factor graph over a search's choices for all classes.

    variables    one per class of operations, then one per class of tensors; its values are its choices
    objective    the least sum of all tables at an assignment: the plan's cost by the problem's objective
    tables       one per link between an operation and a tensor: the cost of every pair of choices, and for
                 one link of every tensor that has a price, the price of what its layout holds; the price of
                 the buffers of a link, if they have one (`buffer_prices`)
    constraints  choices that the restrictions do not allow cost more than any allowed assignment

Given an operation's strategy, its tensors are independent, so tables over pairs suffice. `next_choices` and
`joint_choices` make the values, `factor_graph` the tables, and `Restrictions.priced` the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...analyzer.indices.region import volume
from ..layouts.choices import (
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
)
from ..solvers.elimination import CostTable
from .buffer_prices import with_buffer_prices
from .candidates import (
    KeepDimensions,
    KeepVariables,
    Tables,
    every_dimension,
    every_dimension_or_whole,
    every_variable,
    first_dimension_or_whole,
)
from .problem import Problem
from .sequences import by_batch
from .solution import Solution


def steps_of(problem: Problem, workers: int) -> tuple[int, ...]:
    """Return the sizes of the steps over which a search splits its workers."""
    return problem.objective.factors(workers)


def nothing_split(problem: Problem, factors: tuple[int, ...]) -> Solution:
    """Return the plan before the first step."""
    zero = problem.cost(0)
    return Solution(factors, ((),) * len(problem.operators), ((),) * len(problem.shapes), zero, zero)


def next_choices(
    problem: Problem,
    tables: Tables,
    plan: Solution,
    keep_variables: Callable[[int], KeepVariables] = lambda operator: every_variable,
    keep_dimensions: Callable[[int], KeepDimensions] | None = None,
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return the choices of the step after a plan's steps.

    `keep_variables` and `keep_dimensions` say which choices a method considers for each class; without them,
    it considers all of the problem's space. The problem's restrictions take precedence.
    """
    in_space = every_dimension_or_whole if problem.replicate else every_dimension
    allowed = problem.restrictions
    operators = [
        tables.operator(bound, sequence, allowed.variables(number, sequence, keep_variables(number)))
        for number, (bound, sequence) in enumerate(zip(problem.operators, plan.strategies, strict=True))
    ]
    tensors = [
        tables.tensor(shape, sequence, allowed.dimensions(number, shape, sequence, keep))
        for number, (shape, sequence) in enumerate(zip(problem.shapes, plan.dimensions, strict=True))
        for keep in [
            first_dimension_or_whole
            if number in problem.fed
            else in_space
            if keep_dimensions is None
            else keep_dimensions(number)
        ]
    ]
    return operators, tensors


def factor_graph(
    problem: Problem,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
) -> tuple[list[int], list[CostTable]]:
    """Return the domains and tables of the choices: a variable per operator, then one per tensor.

    Choices that the problem's restrictions forbid cost more than any allowed assignment.
    """
    count = len(operators)
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    cost = problem.objective.table
    cost_tables = [
        CostTable((operator, count + tensor), cost(operators[operator], tensors[tensor], use, weight))
        for operator, tensor, use, weight in problem.links
    ]
    if problem.prices:
        cost_tables = _with_prices(problem, cost_tables, tensors)
    if problem.buffer_prices is not None:
        prices = problem.buffer_prices
        cost_tables = with_buffer_prices(prices, problem.links, cost_tables, operators, tensors)
    restrictions = problem.restrictions
    if restrictions:
        chosen = [c.sequences for c in operators], [c.sequences for c in tensors]
        cost_tables = restrictions.priced(cost_tables, *chosen)
    return domains, cost_tables


def _with_prices(
    problem: Problem, cost_tables: list[CostTable], tensors: Sequence[TensorChoices]
) -> list[CostTable]:
    """Add the price of what each layout holds to one table of its tensor. Equal tables stay one table."""
    priced = list(cost_tables)
    waiting = dict(problem.prices)
    known: dict[tuple[int, int, Fraction], CostTable] = {}
    for number, link in enumerate(problem.links):
        price = waiting.pop(link.tensor, None)
        if price is None:
            continue
        scope, table = cost_tables[number]
        key = id(table), id(tensors[link.tensor]), price
        if key not in known:
            held = volume(tensors[link.tensor].regions).sum(axis=-1)
            known[key] = CostTable(scope, table + held * price.numerator // price.denominator)
        priced[number] = CostTable(scope, known[key].table)
    return priced


Sequences = Callable[[Mapping[Any, int], tuple[int, ...], bool], Sequence[Any]]
"""Makes the sequences of labels from their extents, the steps' factors and whether any step may replicate."""


def joint_choices(
    problem: Problem, factors: tuple[int, ...], sequences: Sequences
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return every operator's and tensor's sequences with their regions; equal ones are computed once.

    Tensors that are fed by batch have one sequence.
    """
    of_bound = {
        bound: operator_choices(bound, sequences(splittable(bound), factors, False), factors)
        for bound in dict.fromkeys(problem.operators)
    }
    tensors = [(shape, number in problem.fed) for number, shape in enumerate(problem.shapes)]
    of_tensor = {
        (shape, fed): tensor_choices(
            shape,
            [by_batch(shape, factors)]
            if fed
            else sequences(dict(enumerate(shape)), factors, problem.replicate),
            factors,
        )
        for shape, fed in dict.fromkeys(tensors)
    }
    return [of_bound[bound] for bound in problem.operators], [of_tensor[tensor] for tensor in tensors]
