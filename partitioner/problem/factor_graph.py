"""Build the factor graph over a search's choices for all classes.

    variables    one per class of operations, then one per class of tensors; its values are its choices
    objective    the least sum of all tables at an assignment: the plan's cost by the problem's objective
    tables       one per link between an operation and a tensor: the cost of every pair of choices, and for
                 one link of every tensor that has a price, the price of what its layout holds, and for one of
                 every tensor that is copied, or fed elsewhere than it is read, the cost of the copy; for one
                 link of every operation, the price of what it repeats; the price of the buffers of a link, if
                 they have one (`buffer_prices`)
    constraints  choices that the restrictions do not allow, and pairs that cannot be (`impossible`), cost
                 more than any allowed assignment

Given an operation's strategy, its tensors are independent, so tables over pairs suffice. `next_choices` and
`joint_choices` make the values, `factor_graph` the tables, and `Restrictions.priced` the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...analyzer.indices.region import split, volume, whole
from ..costs.box_counts import copying, impossible, overlap
from ..costs.least_counts import least_copying, least_outside
from ..layouts.choices import (
    Counts,
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
    with_copies,
)
from ..solvers.elimination import CostTable
from ..solvers.semiring import Table
from .buffer_prices import with_buffer_prices
from .candidates import (
    KeepDimensions,
    KeepVariables,
    Tables,
    every_dimension,
    every_dimension_or_terms,
    every_dimension_or_whole,
    every_variable,
    every_variable_or_repeat,
    every_variable_or_terms,
    everything,
    first_dimension_or_whole,
)
from .links import LinkKinds, Links
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
    keep_variables: Callable[[int], KeepVariables] | None = None,
    keep_dimensions: Callable[[int], KeepDimensions] | None = None,
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return the choices of the step after a plan's steps.

    `keep_variables` and `keep_dimensions` say which choices a method considers for each class; without them,
    it considers all of the problem's space. The problem's restrictions take precedence.
    """
    allowed = problem.restrictions
    of_operator = keep_variables or (lambda number: _variables_in_space(problem, number))
    of_tensor = keep_dimensions or (lambda number: _dimensions_in_space(problem, number))
    operators = [
        tables.operator(bound, sequence, allowed.variables(number, sequence, of_operator(number)))
        for number, (bound, sequence) in enumerate(zip(problem.operators, plan.strategies, strict=True))
    ]
    tensors = [
        tables.tensor(
            shape, sequence, allowed.dimensions(number, shape, sequence, keep), number in problem.stops
        )
        for number, (shape, sequence) in enumerate(zip(problem.shapes, plan.dimensions, strict=True))
        for keep in [first_dimension_or_whole if number in problem.unmoved else of_tensor(number)]
    ]
    for number in problem.copied:
        copy = plan.copies.get(number, plan.dimensions[number])
        layouts = tables.tensor(problem.shapes[number], copy, every_dimension_or_whole)
        tensors[number] = tables.with_copies(tensors[number], layouts)
    return operators, tensors


def _variables_in_space(problem: Problem, number: int) -> KeepVariables:
    if number in problem.reads_terms:
        return every_variable_or_terms
    return every_variable_or_repeat if number in problem.repeats else every_variable


def _dimensions_in_space(problem: Problem, number: int) -> KeepDimensions:
    match problem.may_replicate(number), number in problem.terms:
        case True, True:
            return everything
        case True, False:
            return every_dimension_or_whole
        case False, True:
            return every_dimension_or_terms
        case _:
            return every_dimension


def factor_graph(
    problem: Problem,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
) -> tuple[list[int], list[CostTable]]:
    """Return the domains and tables of the choices: a variable per operator, then one per tensor.

    Choices that the problem's restrictions forbid cost more than any allowed assignment.
    """
    domains = [len(c.sequences) for c in operators] + [len(c.sequences) for c in tensors]
    links, cost = problem.links, problem.objective.table
    kinds = links.kinds(operators, tensors)
    of_kinds = [
        cost(operators[operator], tensors[tensor], use, weight)
        for operator, tensor, use, weight in map(links.__getitem__, kinds.first)
    ]
    tables = [of_kinds[kind] for kind in kinds.of.tolist()]
    _add_unary(links, tables, _prices(problem, tensors))
    _add_unary(links, tables, _copies(problem, tensors))
    _add_unary(links, tables, _alone(problem, operators))
    if problem.reads_terms:
        _add_impossible(problem, tables, operators, tensors, kinds)
    cost_tables = list(map(CostTable, links.scopes, tables))
    if problem.buffer_prices is not None:
        prices = problem.buffer_prices
        cost_tables = with_buffer_prices(
            prices, problem.links, cost_tables, operators, tensors, problem.open_order
        )
    restrictions = problem.restrictions
    if restrictions:
        chosen = [c.sequences for c in operators], [c.sequences for c in tensors]
        cost_tables = restrictions.priced(cost_tables, *chosen)
    return domains, cost_tables


Unary = tuple[int, Counts]
"""A variable, and the cost of each of its values; equal costs of equal choices are one array."""


def _prices(problem: Problem, tensors: Sequence[TensorChoices]) -> list[Unary]:
    """Return the price of what each layout holds, for the tensors that have one.

    Copies live for a part of an iteration, so they have a price only if no bound depends on it.
    """
    held: dict[int, Counts] = {}
    priced: dict[tuple[int, Fraction], Counts] = {}
    found: list[Unary] = []
    for number, price in problem.prices.items():
        choices = tensors[number]
        key = id(choices), price
        costs = priced.get(key)
        if costs is None:
            if id(choices) not in held:
                held[id(choices)] = volume(choices.regions).sum(axis=-1)
                if choices.copied is not None and not problem.bounded:
                    inside = overlap(choices.copied, choices.regions) == volume(choices.copied)
                    held[id(choices)] += np.where(inside, 0, volume(choices.copied)).sum(axis=-1)
            costs = priced[key] = held[id(choices)] * price.numerator // price.denominator
        found.append((len(problem.operators) + number, costs))
    return found


def _copies(problem: Problem, tensors: Sequence[TensorChoices]) -> list[Unary]:
    """Return the cost of making the copies of tensors."""
    known: dict[tuple[int, int, bool], Counts] = {}
    found: list[Unary] = []
    for number in sorted((problem.fed - problem.unmoved) | problem.copied):
        key = id(tensors[number]), problem.itemsizes[number], number in problem.copied
        if key not in known:
            known[key] = copied_bytes(problem, number, tensors[number])
        found.append((len(problem.operators) + number, known[key]))
    return found


def _alone(problem: Problem, operators: Sequence[OperatorChoices]) -> list[Unary]:
    """Return what each choice of an operation costs apart from its tensors."""
    found: list[Unary] = []
    known: dict[tuple[int, int], Counts | None] = {}
    for number, (choices, members) in enumerate(zip(operators, problem.members, strict=True)):
        costs = problem.objective.alone(problem, number, choices)
        if costs is None:
            continue
        key = id(costs), members
        if key not in known:
            known[key] = costs * members if costs.any() else None
        together = known[key]
        if together is not None:
            found.append((number, together))
    return found


def copied_bytes(problem: Problem, number: int, choices: TensorChoices) -> Counts:
    """Return the bytes that move to make the copies of a class of tensors: `[choices]`.

    If it is fed by batch, each choice is the copy, which is made from there.
    """
    if number in problem.copied:
        order = problem.open_order
        made = copying(choices) if order is None else least_copying(choices, order)
        return made * problem.itemsizes[number]
    regions, shape = choices.regions, choices.shape
    factors = problem.objective.factors(regions.shape[1])
    fed = split(whole(shape), by_batch(shape, factors), factors)
    if problem.open_order is not None:
        return least_outside(regions, fed[None], problem.open_order)[:, 0] * problem.itemsizes[number]
    moved: Counts = volume(regions).sum(axis=-1) - overlap(regions, fed).sum(axis=-1)
    return moved * problem.itemsizes[number]


def _add_unary(links: Links, tables: list[Table], unary: Sequence[Unary]) -> None:
    """Add the costs of single values to the first table of their variable. Equal tables stay one table."""
    known: dict[tuple[int, int], tuple[Table, Table]] = {}
    for variable, costs in unary:
        if variable not in links.first_of:
            continue
        number, axis = links.first_of[variable]
        table = tables[number]
        key = id(table), id(costs)
        if key not in known:
            known[key] = table, table + np.expand_dims(costs, 1 - axis)
        tables[number] = known[key][1]


def _add_impossible(
    problem: Problem,
    tables: list[Table],
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    kinds: LinkKinds,
) -> None:
    """Price the pairs of choices that cannot be. Equal tables stay one table."""
    largest = {key: int(table.max()) for key, table in {id(table): table for table in tables}.items()}
    price = 1 << sum([largest[id(table)] for table in tables]).bit_length()
    sums = problem.priced_tables
    barred: list[Counts | None] = []
    for number in kinds.first:
        link = problem.links[number]
        operator, tensor = operators[link.operator], tensors[link.tensor]
        wrong = impossible(operator, tensor, link.use, problem.summed.get(operator.bound, frozenset()))
        barred.append(price * wrong if wrong is not None and wrong.any() else None)
    for number, kind in enumerate(kinds.of.tolist()):
        more = barred[kind]
        if more is not None:
            link, table = problem.links[number], tables[number]
            key = id(table), operators[link.operator], tensors[link.tensor], link.use, price
            if key not in sums:
                sums[key] = table, table + more
            tables[number] = sums[key][1]


Sequences = Callable[[Mapping[Any, int], tuple[int, ...], bool, bool], Sequence[Any]]
"""Makes the sequences of labels from their extents, the steps' factors, whether any step may replicate, and
whether any may be `Partial`.
"""


def joint_choices(
    problem: Problem, factors: tuple[int, ...], sequences: Sequences
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Return every operator's and tensor's sequences with their regions; equal ones are computed once.

    Tensors that are fed by batch have one sequence, unless copies are kept.
    """
    bounds = [
        (bound, number in problem.repeats, number in problem.reads_terms)
        for number, bound in enumerate(problem.operators)
    ]
    of_bound = {
        (bound, repeat, terms): operator_choices(
            bound, sequences(splittable(bound), factors, repeat, terms), factors
        )
        for bound, repeat, terms in dict.fromkeys(bounds)
    }
    kinds = [
        (
            shape,
            number in problem.unmoved,
            problem.may_replicate(number),
            number in problem.terms,
            number in problem.stops,
        )
        for number, shape in enumerate(problem.shapes)
    ]
    of_tensor = {
        (shape, unmoved, replicate, terms, stops): tensor_choices(
            shape,
            [by_batch(shape, factors)]
            if unmoved
            else sequences(dict(enumerate(shape)), factors, replicate, terms),
            factors,
            stops,
        )
        for shape, unmoved, replicate, terms, stops in dict.fromkeys(kinds)
    }
    tensors = [of_tensor[kind] for kind in kinds]
    pairs: dict[TensorChoices, TensorChoices] = {}
    for number in problem.copied:
        homes, shape = tensors[number], problem.shapes[number]
        if homes not in pairs:
            layouts = sequences(dict(enumerate(shape)), factors, True, False)
            pairs[homes] = with_copies(homes, tensor_choices(shape, layouts, factors))
        tensors[number] = pairs[homes]
    return [of_bound[kind] for kind in bounds], tensors
