"""Relax a problem of many steps: the order of the later steps is left open.

    variables    for every class, the labels of the first `ordered` steps, and how often each label occurs in
                 the rest, per run of equal factors
    tables       the least that moves between two such choices, whatever the orders of their rests

All sequences that differ only in the order of a rest are one choice, so there are few choices, and the least
sum of these tables is a lower bound for every plan. It is close, because two classes can mostly agree on an
order in which their parts lie nested. The bound does not require that all classes agree at once.

A choice is represented by its ascending sequence: within a run, the labels in their order, then None, then
`Partial`. Of a class with a restriction, a choice is kept if it has an order that the restriction allows; any
step of such a class may be None. Steps with terms agree if a run has equally many of them. Implemented in:
`ascending` and `orders` (choices), `relaxed` (the relaxed problem), `costs.least_counts` (its tables).

Guarantees: every plan of the recursion costs at least as much as its choices in the relaxed problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ..layouts.choices import (
    Flags,
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
)
from ..layouts.forms import Partial
from .factor_graph import joint_choices
from .problem import Problem
from .restrictions import UNRESTRICTED, Restriction

Labels = tuple[Any, ...]
"""For each step a label of the class, or None."""


def ascending(
    extents: Mapping[Any, int],
    factors: Sequence[int],
    ordered: int,
    replicate: bool = False,
    partial: bool = False,
) -> tuple[Labels, ...]:
    """Return one sequence for each choice: the ascending one; see `sequences.all_sequences`.

    >>> ascending({"i": 4, "j": 4}, (2, 2), 0)
    (('i', 'i'), ('i', 'j'), ('j', 'j'))
    >>> ascending({"i": 2}, (2, 2), 0, replicate=True)
    (('i', None), (None, None))
    """
    labels: list[Any] = [*extents, None, Partial()]
    found: list[tuple[Labels, dict[Any, int]]] = [((), dict(extents))]
    for step, factor in enumerate(factors):
        longer = []
        for sequence, left in found:
            least = labels.index(sequence[-1]) if step > ordered and factors[step - 1] == factor else 0
            fitting: list[Any] = [label for label in extents if left[label] >= factor]
            if replicate or not fitting:
                fitting.append(None)
            if partial:
                fitting.append(Partial())
            for label in fitting:
                if labels.index(label) >= least:
                    rest = {**left, label: left[label] // factor} if label in left else left
                    longer.append(((*sequence, label), rest))
        found = longer
    return tuple(sequence for sequence, _ in found)


def ascending_of(sequence: Labels, labels: Sequence[Any], factors: Sequence[int], ordered: int) -> Labels:
    """Return the ascending sequence of the choice that a sequence belongs to."""
    place = {label: position for position, label in enumerate((*labels, None, Partial()))}
    result = list(sequence)
    for start, end in _runs(factors, ordered):
        result[start:end] = sorted(sequence[start:end], key=place.__getitem__)
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
    known: dict[tuple[Any, ...], int] = {}

    def count(extents: Mapping[Any, int], replicate: bool, terms: bool) -> int:
        key = *extents.items(), replicate, terms
        if key not in known:
            known[key] = len(ascending(extents, factors, ordered, replicate, terms))
        return known[key]

    return [
        *(
            count(splittable(bound), number in problem.repeats, number in problem.reads_terms)
            for number, bound in enumerate(problem.operators)
        ),
        *(
            count(dict(enumerate(shape)), problem.may_replicate(number), number in problem.terms)
            * (count(dict(enumerate(shape)), True, False) if number in problem.copied else 1)
            for number, shape in enumerate(problem.shapes)
        ),
    ]


def relaxed(
    problem: Problem, factors: tuple[int, ...], ordered: int
) -> tuple[Problem, list[OperatorChoices], list[TensorChoices]] | None:
    """Return the relaxed problem and its choices; None if the objective has no relaxation."""
    groups = prod(factors[:ordered])
    objective = problem.objective.in_any_order(groups)
    if objective is None:
        return None

    def sequences(
        extents: Mapping[Any, int], factors: tuple[int, ...], replicate: bool, partial: bool
    ) -> tuple[Labels, ...]:
        return ascending(extents, factors, ordered, replicate, partial)

    def allowed(restriction: Restriction, extents: Mapping[Any, int], partial: bool) -> tuple[Labels, ...]:
        found = ascending(extents, factors, ordered, True, partial)
        return tuple(s for s in found if any(map(restriction.allows, orders(s, factors, ordered))))

    operators, tensors = joint_choices(problem, factors, sequences)
    for number, restriction in problem.restrictions.operators.items():
        bound = problem.operators[number]
        kept = allowed(restriction, splittable(bound), number in problem.reads_terms)
        operators[number] = operator_choices(bound, kept, factors)
    for number, restriction in problem.restrictions.tensors.items():
        shape = problem.shapes[number]
        kept = allowed(restriction, dict(enumerate(shape)), number in problem.terms)
        tensors[number] = tensor_choices(shape, kept, factors, number in problem.stops)
    counted = _Counted(factors, ordered)
    return (
        replace(problem, objective=objective, restrictions=UNRESTRICTED, open_order=groups),
        [counted.operator(choices) for choices in operators],
        [counted.tensor(choices) for choices in tensors],
    )


class _Counted:
    """Choices that say of a run how many steps have terms, not which; equal choices stay one object."""

    def __init__(self, factors: Sequence[int], ordered: int) -> None:
        self._runs = _runs(factors, ordered)
        self._known: dict[OperatorChoices | TensorChoices, Any] = {}

    def operator(self, choices: OperatorChoices) -> OperatorChoices:
        """Return choices with the steps that have terms first in every run."""
        if choices not in self._known:
            makes, reads_at = self._first(choices.makes), self._first(choices.reads_at)
            self._known[choices] = replace(choices, makes=makes, reads_at=reads_at)
        found: OperatorChoices = self._known[choices]
        return found

    def tensor(self, choices: TensorChoices) -> TensorChoices:
        """Return choices with the steps that have terms first in every run."""
        if choices not in self._known:
            self._known[choices] = replace(choices, partial=self._first(choices.partial))
        found: TensorChoices = self._known[choices]
        return found

    def _first(self, steps: Flags) -> Flags:
        found = steps.copy()
        for start, end in self._runs:
            found[:, start:end] = -np.sort(-steps[:, start:end].astype(np.int8), axis=1)
        return found
