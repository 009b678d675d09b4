"""Break ties between plans of equal cost by memory: hold no more of a tensor than its cost pays for.

    given       the strategies of all operations, and layouts d[t] of all tensors
    minimise    the bytes held of every tensor t, over its layouts x
    constraint  sum over the links (o, t, use) of table[link][s[o], x]  =  that sum for d[t]

Given the strategies, tensors are independent, so this is exact and leaves the cost of the plan as it is. The
state of optimizers, which one operation reads and writes, is held in parts for this reason. Plans that
replicate nothing that can be split all hold the same, so they are returned as they are. Tensors with copies
keep their homes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape, volume
from ..layouts.choices import Counts, OperatorChoices, TensorChoices, operator_choices, tensor_choices
from ..layouts.forms import Partial
from ..layouts.step_split import Dimensions, Strategies
from .factor_graph import copied_bytes
from .links import Link
from .problem import Problem
from .sequences import by_batch, candidates
from .solution import Solution

LAYOUT_LIMIT = 512
"""If a tensor has more layouts, only those near its own are compared."""


def lightest(problem: Problem, plan: Solution) -> Solution:
    """Return the plan of equal cost, with the same strategies, whose tensors hold the least."""
    if not problem.replicate:
        return plan
    links: list[list[Link]] = [[] for _ in problem.shapes]
    for link in problem.links:
        links[link.tensor].append(link)
    layouts = _Layouts(problem, plan)
    dimensions = tuple(
        own
        if number in problem.unmoved or number in plan.copies or Partial() in own
        else layouts.lightest(number, links[number])
        for number, own in enumerate(plan.dimensions)
    )
    return replace(plan, dimensions=dimensions)


class _Layouts:
    """The layouts of tensors with their costs; equal ones are computed once."""

    def __init__(self, problem: Problem, plan: Solution) -> None:
        self._problem = problem
        self._plan = plan
        self._operators: dict[tuple[Bound, Strategies], OperatorChoices] = {}
        self._tensors: dict[tuple[Shape, Dimensions, bool], tuple[TensorChoices, Counts]] = {}

    def lightest(self, number: int, links: list[Link]) -> Dimensions:
        """Return the layout of a class of tensors, its own if none is lighter."""
        tensor, held = self._tensor(number)
        costs = np.zeros(len(tensor.sequences), np.int64)
        if number in self._problem.fed:
            costs += copied_bytes(self._problem, number, tensor)
            at_home = by_batch(tensor.shape, self._plan.factors)
            held = np.where([sequence == at_home for sequence in tensor.sequences], 0, held)
        for operator, _, use, weight in links:
            costs += self._problem.objective.table(self._operator(operator), tensor, use, weight)[0]
        restriction = self._problem.restrictions.tensors.get(number)
        for choice in np.argsort(held, kind="stable").tolist():
            sequence = tensor.sequences[choice]
            if costs[choice] == costs[0] and (restriction is None or restriction.allows(sequence)):
                return sequence
        return tensor.sequences[0]

    def _operator(self, number: int) -> OperatorChoices:
        bound, strategies = self._problem.operators[number], self._plan.strategies[number]
        found = self._operators.get((bound, strategies))
        if found is None:
            found = operator_choices(bound, [strategies], self._plan.factors)
            self._operators[bound, strategies] = found
        return found

    def _tensor(self, number: int) -> tuple[TensorChoices, Counts]:
        """Return the layouts of a tensor, its own first, and the elements that each holds."""
        shape, own = self._problem.shapes[number], self._plan.dimensions[number]
        stops = number in self._problem.stops
        found = self._tensors.get((shape, own, stops))
        if found is None:
            factors = self._plan.factors
            sequences, _ = candidates(dict(enumerate(shape)), factors, own, LAYOUT_LIMIT, True)
            choices = tensor_choices(shape, sequences, factors, stops)
            found = self._tensors[shape, own, stops] = choices, volume(choices.regions).sum(axis=-1)
        return found
