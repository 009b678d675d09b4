"""Refine two plans into one by large moves; each finds the best plan of a neighbourhood.

    a move from plan c:    minimise  cost(x)   over all x[v] in near(c[v]), for all classes v at once
    near(sequence)         the sequence, and those that differ from it in one step

In a move, every operation and every tensor may change any one of its steps, all of them at once. Pruning and
elimination find the best of all such plans. These include all plans that solve one step again with the others
held, and all plans in which different tensors change different steps.

The recursive plan, and the plan that chops every tensor along a single dimension, lie in different valleys.
Each moves once. Then one move near both lets every part of the problem follow either of them. Later moves may
also reorder steps, because the parts of a dimension that two steps split are nested in the order of the
steps. Moves end when one gains very little. If a neighbourhood is too wide for elimination, a good plan of it
is searched, at most as costly as its centre. Implemented in: `problem.sequences.Near` (neighbourhoods),
`_Search.moved` and `moved` (moves), `_Search.merged` (the move near both), `solvers.dominance`,
`solvers.elimination`, `solvers.solve.approached` (wide neighbourhoods).

Guarantees: no move raises the cost, because every neighbourhood contains its centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from ..layouts.choices import OperatorChoices, TensorChoices
from ..layouts.forms import Partial
from ..plans.cost import Cost
from ..plans.unproven import too_wide, unbounded
from ..problem.candidates import Tables
from ..problem.factor_graph import factor_graph
from ..problem.lightest import lightest
from ..problem.problem import Problem
from ..problem.sequences import Label, Near
from ..problem.solution import Solution, assigned, chosen
from ..solvers import elimination
from ..solvers.dominance import Dominance
from ..solvers.elimination import eliminate
from ..solvers.errors import WidthError
from ..solvers.min_plus import MIN_PLUS
from ..solvers.semiring import TableArithmetic
from ..solvers.solve import NO_PROOF, approached
from .baselines import chops
from .recursive import recursive

LEAST_GAIN = 1e-3
"""Moves end when one gains less than this fraction of the cost."""

WIDER = 2
"""A move near a single plan may combine tables that are this many times larger than those of a step."""


def refine(problem: Problem, workers: int) -> Solution:
    """Return the best plan that moves find from the recursive and the equally chopped plan.

    It is never worse than the recursive plan. If the last neighbourhood is too densely connected to be
    searched exactly, the plan is marked unproven.
    """
    return refined(problem, recursive(problem, workers))


def refined(problem: Problem, plan: Solution) -> Solution:
    """Return the best plan that moves find from a recursive plan and the equally chopped one."""
    if len(plan.factors) < 2:
        return plan
    search = _Search(problem, plan)
    return lightest(problem, search.moved(search.merged(plan)))


def moved(problem: Problem, plan: Solution) -> Solution:
    """Return a plan after moves near it; the last one gains little or is too wide to be searched."""
    return _Search(problem, plan).moved(plan)


class _Search:
    """The state that successive moves share: most of a problem, and so most of its tables, stays the same."""

    def __init__(self, problem: Problem, start: Solution) -> None:
        self._problem = problem
        self._start = start
        self._tables = Tables(start.factors)
        self._dominance = Dominance()
        self._arithmetic = TableArithmetic(MIN_PLUS)

    def merged(self, plan: Solution) -> Solution:
        """Return the best plan near both this one and the chopped one, each moved once.

        If that is too wide, the search is near the worse of them, and everything may also be as in the better
        one. If that is still too wide, a good plan near both is searched.
        """
        chopped = self._least(*chops(self._problem, plan.factors), wide=True)
        moved = [self.best_near([plan], wide=True), self.best_near([chopped], wide=True)]
        better, worse = sorted(moved, key=_cost)
        with suppress(WidthError):
            return self.best_near([better, worse])
        with suppress(WidthError):
            return self.best_near([worse], [better])
        return self.best_near([better, worse], wide=True)

    def moved(self, plan: Solution) -> Solution:
        """Return the plan after several moves, which also reorder steps if they are not too wide then."""
        plan, wide = self._moved(plan, reorder=True)
        if wide is None:
            return plan
        plan, _ = self._moved(plan, reorder=False)
        return replace(plan, unproven=(*plan.unproven, too_wide(None, wide.entries, None)))

    def _moved(self, plan: Solution, reorder: bool) -> tuple[Solution, WidthError | None]:
        """Return the plan after several moves; the last one gains little.

        If moves `reorder` steps, one that is too wide is the last as well.
        """
        gained = True
        while gained:
            try:
                better = self.best_near([plan], reorder=reorder, wide=not reorder)
            except WidthError as error:
                return plan, error
            gained = plan.cost.value - better.cost.value > LEAST_GAIN * plan.cost.value
            plan = min(plan, better, key=_cost)
        return plan, None

    def best_near(
        self,
        centres: Sequence[Solution],
        others: Sequence[Solution] = (),
        reorder: bool = False,
        wide: bool = False,
    ) -> Solution:
        """Return the best plan whose choices are near those of a centre or as in another plan.

        Raises WidthError if the search needs too large a table. If the problem may be `wide`, a good plan is
        returned then, at most as costly as the first centre.
        """
        problem, tables = self._problem, self._tables
        operators = [
            tables.operator_near(
                bound,
                _near(
                    [p.strategies[n] for p in centres],
                    [p.strategies[n] for p in others],
                    reorder,
                    n in problem.repeats,
                    n in problem.reads_terms,
                ),
            )
            for n, bound in enumerate(problem.operators)
        ]
        tensors = [
            tables.tensor_near(
                shape,
                Near((), (centres[0].dimensions[n],))
                if n in problem.unmoved
                else _near(
                    [p.dimensions[n] for p in centres],
                    [p.dimensions[n] for p in others],
                    reorder,
                    problem.may_replicate(n),
                    n in problem.terms,
                ),
                n in problem.stops,
            )
            for n, shape in enumerate(problem.shapes)
        ]
        for n in problem.copied:
            near = _near(
                [p.copies.get(n, p.dimensions[n]) for p in centres],
                [p.copies.get(n, p.dimensions[n]) for p in others],
                reorder,
                True,
            )
            tensors[n] = tables.with_copies(tensors[n], tables.tensor_near(problem.shapes[n], near))
        return self._least(operators, tensors, WIDER if len(centres) == 1 else 1, wide, centres[0])

    def _least(
        self,
        operators: Sequence[OperatorChoices],
        tensors: Sequence[TensorChoices],
        wider: int = 1,
        wide: bool = False,
        known: Solution | None = None,
    ) -> Solution:
        """Return the best plan of these choices; tables may be `wider` times larger than in a step.

        If the problem may be `wide`, it is a good one instead of an error, at most as costly as one that is
        `known`.
        """
        start = self._start
        pruned = self._dominance.prune(*factor_graph(self._problem, operators, tensors))
        limit = wider * elimination.TABLE_LIMIT
        try:
            solved = eliminate(
                pruned.domains, pruned.cost_tables, arithmetic=self._arithmetic, table_limit=limit
            )
            cost, assignment = solved.optimum, solved.assignment
        except WidthError as error:
            if not wide:
                raise
            own = None if known is None else pruned.replaced(chosen(known, operators, tensors))
            found = approached(pruned.domains, pruned.cost_tables, error, NO_PROOF, own)
            cost, assignment = found.cost, found.assignment
        return assigned(
            start.factors,
            operators,
            tensors,
            pruned.original(assignment),
            cost=Cost(cost, start.cost.unit),
            lower_bound=start.lower_bound.value,
            unproven=unbounded(start.unproven),
        )


def _near(
    centres: Iterable[tuple[Label | Partial | None, ...]],
    others: Iterable[tuple[Label | Partial | None, ...]],
    reorder: bool,
    replicate: bool = False,
    partial: bool = False,
) -> Near[Label]:
    return Near(tuple(dict.fromkeys(centres)), tuple(dict.fromkeys(others)), reorder, replicate, partial)


def _cost(plan: Solution) -> int:
    return plan.cost.value
