"""Look at plans in rising order of a bound on cost or memory, until none that is left can be better.

    L(x)  =  cost(x) + sum over o of  p[o] * (live[o](x) - room)      at some prices p[o] >= 0

A plan within the limit costs at least L(x), see `lagrangian`. So if plans come in rising order of L, and L
reaches the cost of the best plan that fits, that plan is the best of all. Before that, L bounds the cost of
all that was not looked at, so more effort raises the bound. With a price on one operation that outweighs all
costs, plans come in rising order of what is live there, which bounds memory likewise. The memory of a plan is
what its lowered program needs; plans whose live bytes are too many already are not lowered. Implemented
in: `solvers.rising` (the order), `PlansByCost.cheapest` and `lightest`.

Guarantees: both return what holds for every plan of the space, also if the effort ends before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from ..layouts.choices import splittable
from ..problem.factor_graph import factor_graph, joint_choices
from ..problem.live_bytes import LiveBytes
from ..problem.restrictions import UNRESTRICTED
from ..problem.sequences import all_sequences, sequence_count
from ..problem.solution import Solution, assigned
from ..solvers.elimination import CostTable
from ..solvers.errors import WidthError
from ..solvers.rising import rising
from .lagrangian import LivePrices

SEQUENCE_LIMIT = 128
"""Plans are enumerated only if no operation or tensor has more choices."""

LOOKED = 1 << 15
"""The number of operations of all plans that are looked at."""

LOWERED = 1 << 12
"""The number of operations of all plans that are lowered."""

LARGEST = 1 << 60
"""Sums of tables stay below this."""

Needed = Callable[[Solution], int]
"""Returns the memory that the fullest worker of a plan needs."""


class _Looked(NamedTuple):
    """A plan that comes next."""

    value: int
    """Its cost with prices. All later plans have at least as much."""

    cost: int
    """Its cost."""

    solution: Solution
    """The plan."""

    least_bytes: int
    """The bytes that its fullest worker holds at least."""


class PlansByCost:
    """The plans of a problem, for enumeration."""

    def __init__(self, live: LiveBytes, workers: int, least_workspace: int) -> None:
        self._live = live
        self._least_workspace = least_workspace
        self._workers = workers
        self._problem = problem = live.problem
        self._factors = factors = problem.objective.factors(workers)
        counts = [
            sequence_count(splittable(bound), factors, n in problem.repeats, n in problem.reads_terms)
            for n, bound in enumerate(problem.operators)
        ]
        counts += [
            sequence_count(dict(enumerate(shape)), factors, problem.may_replicate(n), n in problem.terms)
            for n, shape in enumerate(problem.shapes)
        ]
        few = max(counts, default=1) <= SEQUENCE_LIMIT
        self._choices = joint_choices(problem, factors, all_sequences) if few else None

    def cheapest(self, prices: LivePrices, limit_bytes: int, best: int | None, needed: Needed) -> int:
        """Look for plans that fit and cost less than `best`, what a plan costs that fits, if one is known.

        Return a lower bound on the cost of plans that fit: that of the best one, if the effort suffices.
        """
        order = self._rising(prices)
        if order is None:
            return 0
        if best is None:
            best = self._above_all
        bound, lowered = 0, self._effort(LOWERED)
        for number, looked in enumerate(order):
            bound = prices.bound(looked.value)
            if bound >= best:
                break
            if number == self._effort(LOOKED):
                return bound
            if looked.cost >= best or looked.least_bytes > limit_bytes:
                continue
            if not lowered:
                return bound
            lowered -= 1
            if needed(looked.solution) <= limit_bytes:
                best = looked.cost
        return best

    def lightest(self, operation: int, limit_bytes: int, least: int, needed: Needed) -> int:
        """Look for a plan that fits, the fewest bytes live at an operation first.

        Return a lower bound on the memory that plans need, given that one needs `least` bytes: just the least
        memory, if the effort suffices and nothing fits.
        """
        above_all = self._above_all
        prices = LivePrices(self._live, self._workers, 0, {operation: Fraction(above_all)})
        order = self._rising(prices)
        if order is None:
            return 0
        proven, lowered = 0, self._effort(LOWERED)
        for number, looked in enumerate(order):
            proven = -(-(prices.bound(looked.value) // above_all) // self._workers) + self._least_workspace
            if proven >= least:
                break
            if number == self._effort(LOOKED):
                return proven
            if looked.cost >= above_all or looked.least_bytes >= least:
                continue
            if not lowered:
                return proven
            lowered -= 1
            least = min(least, needed(looked.solution))
            if least <= limit_bytes:
                return proven
        return least

    @cached_property
    def _above_all(self) -> int:
        """A cost above that of every plan."""
        if self._choices is None:
            return 0
        anything = replace(self._problem, reads_terms=frozenset(), restrictions=UNRESTRICTED)
        _, tables = factor_graph(anything, *self._choices)
        return 1 + sum(int(cost_table.table.max()) for cost_table in tables)

    def _effort(self, operations: int) -> int:
        return operations // max(len(self._problem.graph.operations), 1)

    def _rising(self, prices: LivePrices) -> Iterator[_Looked] | None:
        """Return plans in rising order of cost with prices; None if there are too many choices."""
        if self._choices is None:
            return None
        operators, tensors = self._choices
        _, plain = factor_graph(self._problem, operators, tensors)
        domains, priced = factor_graph(prices.priced(), operators, tensors)
        if sum(float(cost_table.table.max()) for cost_table in priced) > LARGEST:
            return None
        try:
            order = rising(domains, priced)
        except WidthError:
            return None
        return (self._looked(value, assignment, plain) for value, assignment in order)

    def _looked(self, value: int, assignment: tuple[int, ...], plain: Sequence[CostTable]) -> _Looked:
        cost = sum(int(table[assignment[o], assignment[t]]) for (o, t), table in plain)
        assert self._choices is not None, "there is an assignment"
        found = assigned(self._factors, *self._choices, assignment, cost=self._problem.cost(cost))
        _, live = self._live.fullest_of(found.strategies, found.dimensions, self._factors)
        return _Looked(value, cost, found, -(-live // self._workers) + self._least_workspace)
