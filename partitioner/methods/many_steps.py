"""Search many steps together: first how often everything is split, then in which order.

    bound       the least sum of the relaxed problem, whose later steps have no order (`problem.any_order`)
    plan        the best plan near(p) for the best plan p so far, again and again while it gains
    near(p)     for every class, the orders of those relaxed choices that cost least next to the relaxed
                choices of p, up to `NEAR_LIMITS` sequences; and its sequence in p

The relaxed problem is small: 70 choices where four steps over four dimensions have 256 sequences. Its
solution says how often everything is split, which is most of what matters. The searches near it and near the
refined plan choose the orders. Implemented in: `_bound`, `_Nearby`, `many_steps` (the rounds).

Guarantees: the plan is never worse than the given one, and no plan of the recursion costs less than its
bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..layouts.choices import (
    Counts,
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
    with_copies,
)
from ..layouts.step_split import Dimensions, Strategies
from ..plans.cost import Cost
from ..plans.unproven import unbounded
from ..problem.any_order import ascending_of, choice_counts, orders, relaxed
from ..problem.factor_graph import factor_graph
from ..problem.lightest import lightest
from ..problem.problem import Problem
from ..problem.solution import Solution, assigned
from ..solvers.anytime import Effort, Report, close_gap, unheard
from ..solvers.dominance import Dominance
from ..solvers.elimination import eliminate
from ..solvers.errors import WidthError
from .refine import LEAST_GAIN, moved

CHOICE_LIMIT = 1 << 12
"""If a class has more relaxed choices, no bound is searched for."""

ORDERED_LIMIT = 1 << 24
"""More steps keep their order if all tables together have no more entries then."""

NEAR_LIMITS = (32, 128)
"""The number of sequences of each class that a search near a plan considers; the second if a gap is left."""

TABLE_LIMIT = 1 << 22
"""The largest number of entries of a table that an elimination may combine."""

EFFORT = Effort(sweep_entries=1 << 28, search_entries=1 << 27)
"""The work of a search near a plan."""


def many_steps(problem: Problem, plan: Solution, report: Report) -> Solution:
    """Return the best plan found from a given one, with a bound from the relaxed problem."""
    factors = plan.factors
    if max(choice_counts(problem, factors, 0)) > CHOICE_LIMIT:
        return plan
    ordered = 0
    while ordered < len(factors) and _entries(problem, factors, ordered + 1) <= ORDERED_LIMIT:
        ordered += 1
    found = relaxed(problem, factors, ordered)
    if found is None:
        return plan
    nearby = _Nearby(problem, *found, factors, ordered)
    bound, centre = nearby.solved(plan.cost.value, lambda bound: report(plan.cost.value, bound))
    plan = replace(plan, lower_bound=Cost(max(bound, plan.lower_bound.value), plan.cost.unit))
    bound = plan.lower_bound.value
    for limit in NEAR_LIMITS:
        centres = [] if centre is None else [centre]
        left = gain = plan.cost.value - bound
        while min(left, gain) > LEAST_GAIN * plan.cost.value:
            before = plan.cost.value
            for around in (*centres, nearby.choices_of(plan)):
                better = nearby.best(plan, around, limit)
                if better.cost.value < plan.cost.value:
                    plan = better
                    report(plan.cost.value, bound)
            centres, left, gain = [], plan.cost.value - bound, before - plan.cost.value
    if bound < plan.cost.value:
        plan = moved(problem, plan)
        report(plan.cost.value, bound)
    unproven = () if bound == plan.cost.value else unbounded(plan.unproven)
    return lightest(problem, replace(plan, unproven=unproven))


def _entries(problem: Problem, factors: tuple[int, ...], ordered: int) -> int:
    """Return the number of entries of all tables of a relaxed problem."""
    counts = choice_counts(problem, factors, ordered)
    first = len(problem.operators)
    return sum(counts[link.operator] * counts[first + link.tensor] for link in problem.links)


class _Nearby:
    """The relaxed problem, and the searches near its assignments."""

    def __init__(
        self,
        problem: Problem,
        loose: Problem,
        operators: Sequence[OperatorChoices],
        tensors: Sequence[TensorChoices],
        factors: tuple[int, ...],
        ordered: int,
    ) -> None:
        self._problem = problem
        self._factors = factors
        self._ordered = ordered
        self._sequences: list[Sequence[Strategies | Dimensions]] = [c.sequences for c in operators]
        self._sequences += [c.sequences for c in tensors]
        self._tensors = tensors
        self._domains, self._tables = factor_graph(loose, operators, tensors)
        self._made: dict[tuple[Hashable, ...], Any] = {}

    def solved(self, cost: int, report: Any) -> tuple[int, tuple[int, ...] | None]:
        """Return the bound, and the relaxed choices that attain it or come near; None if all cost `cost`."""
        pruned = Dominance().prune(self._domains, self._tables)
        try:
            best = eliminate(pruned.domains, pruned.cost_tables, table_limit=TABLE_LIMIT)
        except WidthError:
            gap = close_gap(pruned.domains, pruned.cost_tables, cost, lambda _, bound: report(bound))
            chosen = None if gap.assignment is None else pruned.original(gap.assignment)
            return gap.bound, chosen
        report(best.optimum)
        return min(best.optimum, cost), pruned.original(best.assignment)

    def choices_of(self, plan: Solution) -> tuple[int, ...]:
        """Return the relaxed choices of a plan."""
        of_operators = [
            sequences.index(self._ascending(own, list(splittable(bound))))
            for bound, sequences, own in zip(
                self._problem.operators, self._sequences, plan.strategies, strict=False
            )
        ]
        of_tensors = []
        for number, (tensor, own) in enumerate(zip(self._tensors, plan.dimensions, strict=True)):
            labels = range(len(tensor.shape))
            home, copy = self._ascending(own, labels), plan.copies.get(number)
            other = None if copy is None else self._ascending(copy, labels)
            of_tensors.append(tensor.number(home, None if other == home else other))
        return (*of_operators, *of_tensors)

    def _ascending(self, sequence: Strategies | Dimensions, labels: Sequence[Any]) -> Any:
        return ascending_of(sequence, labels, self._factors, self._ordered)

    def best(self, plan: Solution, around: Sequence[int], limit: int) -> Solution:
        """Return the best plan near these relaxed choices, or `plan` if none is better."""
        problem = self._problem
        costs = self._costs(around)
        near = self._near(costs, (*plan.strategies, *plan.dimensions), limit)
        count = len(problem.operators)
        operators = [
            self._once(operator_choices, bound, sequences)
            for bound, sequences in zip(problem.operators, near[:count], strict=True)
        ]
        tensors = [
            self._once(tensor_choices, shape, sequences, number in problem.stops)
            for number, (shape, sequences) in enumerate(zip(problem.shapes, near[count:], strict=True))
        ]
        for number in problem.copied:
            copies = self._copies_near(number, costs[count + number], plan)
            layouts = self._once(tensor_choices, problem.shapes[number], copies)
            tensors[number] = with_copies(tensors[number], layouts)
        pruned = Dominance().prune(*factor_graph(problem, operators, tensors))
        try:
            solved = eliminate(pruned.domains, pruned.cost_tables, table_limit=TABLE_LIMIT)
            cost, assignment = solved.optimum, solved.assignment
        except WidthError:
            gap = close_gap(pruned.domains, pruned.cost_tables, plan.cost.value, unheard, EFFORT)
            if gap.assignment is None:
                return plan
            cost, assignment = gap.cost, gap.assignment
        return assigned(
            self._factors,
            operators,
            tensors,
            pruned.original(assignment),
            cost=Cost(cost, plan.cost.unit),
            lower_bound=plan.lower_bound.value,
            unproven=plan.unproven,
        )

    def _once(self, make: Any, subject: Hashable, sequences: tuple[Any, ...], *others: bool) -> Any:
        key = subject, sequences, *others
        if key not in self._made:
            self._made[key] = make(subject, sequences, self._factors, *others)
        return self._made[key]

    def _costs(self, around: Sequence[int]) -> list[Counts]:
        """Return the cost of every relaxed choice next to these ones."""
        costs = [np.zeros(domain, np.int64) for domain in self._domains]
        for (a, b), table in self._tables:
            costs[a] += table[:, around[b]]
            costs[b] += table[around[a]]
        return costs

    def _copies_near(self, number: int, costs: Counts, plan: Solution) -> tuple[Dimensions, ...]:
        """Return the layouts of copies of a tensor: its own in a plan, then the orders of cheap ones."""
        kept = {plan.copies.get(number, plan.dimensions[number]): None}
        cheap = [self._tensors[number].copies[choice] for choice in np.argsort(costs, kind="stable").tolist()]
        for copy in dict.fromkeys(cheap):
            more = [] if copy is None else list(orders(copy, self._factors, self._ordered))
            if len(kept) + len(more) > NEAR_LIMITS[0]:
                break
            kept |= dict.fromkeys(more)
        return tuple(kept)

    def _near(
        self, costs: Sequence[Counts], own: Sequence[Strategies | Dimensions], limit: int
    ) -> list[tuple[Any, ...]]:
        """Return the sequences of every class: its own in a plan, then the orders of cheap choices."""
        found = []
        for number, each in enumerate(costs):
            kept = {own[number]: None}
            for choice in np.argsort(each, kind="stable").tolist():
                new = orders(self._sequences[number][choice], self._factors, self._ordered)
                more = [sequence for sequence in new if self._allows(number, sequence)]
                if len(kept) + len(more) > limit and len(kept) > 1:
                    break
                kept |= dict.fromkeys(more)
            found.append(tuple(kept))
        return found

    def _allows(self, number: int, sequence: Strategies | Dimensions) -> bool:
        restrictions, count = self._problem.restrictions, len(self._problem.operators)
        restriction = (
            restrictions.operators.get(number) if number < count else restrictions.tensors.get(number - count)
        )
        return restriction is None or restriction.allows(sequence)
