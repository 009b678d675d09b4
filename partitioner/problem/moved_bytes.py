"""The default objective: the bytes that move between workers.

    table[o, t, use][s, d]  =  weight * elements that move between o under s and t under d
    cost of a plan          =  sum of all tables after the last step, and the price of repeated computation
    cost of a step          =  that sum after the step less the sum before it

After some steps, each of the remaining groups counts as one worker. Implemented in: `costs.box_counts`
(elements that move), `MovedBytes.table`, `Chosen.moved_bytes` (the same sum, counted without tables),
`lower_bound` (a bound for all plans).
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..costs.box_counts import communication
from ..costs.least_counts import least_communication
from ..costs.repeated import repeated_bytes
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.step_split import prime_factors
from ..layouts.uses import Use
from ..plans.cost import CostUnit
from .lower_bound import first_step_bound
from .problem import Chosen, FirstStep, Problem


class MovedBytes:
    """Tables of bytes, each computed once because layers repeat, and kept as long as their choices are.

    After some steps, each of the remaining groups counts as one worker. After all steps, the sum of the
    tables is the number of bytes that the runtime fetches.
    """

    unit = CostUnit.BYTES

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[OperatorChoices, dict[tuple[TensorChoices, Use, int], Counts]]
        self._tables = WeakKeyDictionary()
        self._repeated: WeakKeyDictionary[OperatorChoices, Counts] = WeakKeyDictionary()

    def factors(self, workers: int) -> tuple[int, ...]:
        """Split over the prime factors of the worker count, largest first."""
        return prime_factors(workers)

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Count the bytes that move for every pair of choices."""
        known = self._tables.setdefault(operator, {})
        found = known.get((tensor, use, weight))
        if found is None:
            found = known[tensor, use, weight] = self._elements(operator, tensor, use) * weight
        return found

    def total(self, chosen: Chosen) -> int:
        """Count a plan's bytes from the graph, without the tables, and add the price of what is repeated."""
        return chosen.moved_bytes[-1] + chosen.repeated_bytes

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Count the bytes that must cross between the groups of the first step, whatever later steps do."""
        if first.steps == 1:
            return first.least()
        return first_step_bound(
            problem, first.operators, first.tensors, first.tables, first.least(), first.arithmetic
        )

    def alone(self, problem: Problem, number: int, choices: OperatorChoices) -> Counts | None:
        """Return the price of what operations repeat, if they may."""
        if not problem.priced:
            return None
        if choices not in self._repeated:
            self._repeated[choices] = repeated_bytes(choices)
        return self._repeated[choices]

    def in_any_order(self, groups: int) -> LeastBytes:
        """Return the bytes that move at least if the order of later steps is open."""
        return LeastBytes(groups)

    def _elements(self, operator: OperatorChoices, tensor: TensorChoices, use: Use) -> Counts:
        return communication(operator, tensor, use)


class LeastBytes(MovedBytes):
    """Tables of the bytes that move at least, whatever the order of the steps after the first groups."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self._groups = groups

    def _elements(self, operator: OperatorChoices, tensor: TensorChoices, use: Use) -> Counts:
        return least_communication(operator, tensor, use, self._groups)
