"""Relax a problem of many steps: the order of the later steps is left open.

    variables    for every class, the labels of the first `ordered` steps, and how often each label occurs in
                 the rest, per run of equal factors
    tables       the least that moves between two such choices, whatever the orders of their rests

All sequences that differ only in the order of a rest are one choice, so there are few choices, and the least
sum of these tables is a lower bound for every plan. It is close, because two classes can mostly agree on an
order in which their parts lie nested. What is lost is that all classes must agree at once.

A choice is represented by its ascending sequence: within a run, the labels in their order, None last. Of a
class with a restriction, a choice is kept if it has an order that the restriction allows; any step of such a
class may be None. Implemented in: `ascending` and `orders` (choices), `relaxed` (the relaxed problem),
`costs.least_counts` (its tables).

Guarantees: every plan of the recursion costs at least as much as its choices in the relaxed problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ..layouts.choices import (
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
)
from .problem import Problem
from .restrictions import UNRESTRICTED, Restriction
from .sequences import by_batch

Labels = tuple[Any, ...]
"""For each step a label of the class, or None."""


def ascending(
    extents: Mapping[Any, int], factors: Sequence[int], ordered: int, replicate: bool = False
) -> tuple[Labels, ...]:
    """Return one sequence for each choice: the ascending one.

    >>> ascending({"i": 4, "j": 4}, (2, 2), 0)
    (('i', 'i'), ('i', 'j'), ('j', 'j'))
    >>> ascending({"i": 2}, (2, 2), 0, replicate=True)
    (('i', None), (None, None))
    """
    labels: list[Any] = [*extents, None]
    found: list[tuple[Labels, dict[Any, int]]] = [((), dict(extents))]
    for step, factor in enumerate(factors):
        longer = []
        for sequence, left in found:
            least = labels.index(sequence[-1]) if step > ordered and factors[step - 1] == factor else 0
            fitting = [label for label in extents if left[label] >= factor]
            for label in (*fitting, None) if replicate or not fitting else fitting:
                if labels.index(label) >= least:
                    rest = left if label is None else {**left, label: left[label] // factor}
                    longer.append(((*sequence, label), rest))
        found = longer
    return tuple(sequence for sequence, _ in found)


def ascending_of(sequence: Labels, labels: Sequence[Any], factors: Sequence[int], ordered: int) -> Labels:
    """Return the ascending sequence of the choice that a sequence belongs to."""
    place: dict[Any, int] = {label: position for position, label in enumerate(labels)}
    result = list(sequence)
    for start, end in _runs(factors, ordered):
        result[start:end] = sorted(sequence[start:end], key=lambda label: place.get(label, len(place)))
    return tuple(result)


def orders(sequence: Labels, factors: Sequence[int], ordered: int) -> Iterator[Labels]:
    """Yield every sequence that belongs to the same choice, this one first.

    >>> list(orders(("i", "i", "j"), (2, 2, 2), 1))
    [('i', 'i', 'j'), ('i', 'j', 'i')]
    """
    heads: list[Labels] = [sequence[:ordered]]
    for start, end in _runs(factors, ordered):
        tails = _distinct(sequence[start:end])
        heads = [(*head, *tail) for head in heads for tail in tails]
    return iter(heads)


def _runs(factors: Sequence[int], ordered: int) -> list[tuple[int, int]]:
    """Return where runs of equal factors after the ordered steps begin and end."""
    cuts = [i for i in range(ordered, len(factors)) if i == ordered or factors[i] != factors[i - 1]]
    return list(pairwise([*cuts, len(factors)]))


def _distinct(rest: Labels) -> list[Labels]:
    """Return the distinct orders of these labels."""
    found: list[tuple[Labels, Labels]] = [((), rest)]
    for _ in rest:
        longer: list[tuple[Labels, Labels]] = []
        for head, left in found:
            for place, label in enumerate(left):
                if label not in left[:place]:
                    longer.append(((*head, label), (*left[:place], *left[place + 1 :])))
        found = longer
    return [head for head, _ in found]


def choice_counts(problem: Problem, factors: tuple[int, ...], ordered: int) -> list[int]:
    """Return the number of choices of every class without restrictions: operators, then tensors."""
    bounds = {
        bound: len(ascending(splittable(bound), factors, ordered))
        for bound in dict.fromkeys(problem.operators)
    }
    shapes = {
        shape: len(ascending(dict(enumerate(shape)), factors, ordered, problem.replicate))
        for shape in dict.fromkeys(problem.shapes)
    }
    return [bounds[bound] for bound in problem.operators] + [shapes[shape] for shape in problem.shapes]


def relaxed(
    problem: Problem, factors: tuple[int, ...], ordered: int
) -> tuple[Problem, list[OperatorChoices], list[TensorChoices]] | None:
    """Return the relaxed problem and its choices; None if the objective has no relaxation."""
    objective = problem.objective.in_any_order(prod(factors[:ordered]))
    if objective is None:
        return None
    operators: dict[tuple[Bound, Restriction | None], OperatorChoices] = {}
    tensors: dict[tuple[Shape, bool, Restriction | None], TensorChoices] = {}

    def sequences(extents: Mapping[Any, int], restriction: Restriction | None, replicate: bool) -> Any:
        found = ascending(extents, factors, ordered, replicate or restriction is not None)
        if restriction is None:
            return found
        return [s for s in found if any(map(restriction.allows, orders(s, factors, ordered)))]

    for number, bound in enumerate(problem.operators):
        restriction = problem.restrictions.operators.get(number)
        if (bound, restriction) not in operators:
            kept = sequences(splittable(bound), restriction, False)
            operators[bound, restriction] = operator_choices(bound, kept, factors)
    for number, shape in enumerate(problem.shapes):
        restriction = problem.restrictions.tensors.get(number)
        fed = number in problem.fed
        if (shape, fed, restriction) not in tensors:
            extents = dict(enumerate(shape))
            kept = [by_batch(shape, factors)] if fed else sequences(extents, restriction, problem.replicate)
            tensors[shape, fed, restriction] = tensor_choices(shape, kept, factors)
    allowed = problem.restrictions
    return (
        replace(problem, objective=objective, restrictions=UNRESTRICTED),
        [operators[bound, allowed.operators.get(n)] for n, bound in enumerate(problem.operators)],
        [tensors[s, n in problem.fed, allowed.tensors.get(n)] for n, s in enumerate(problem.shapes)],
    )
