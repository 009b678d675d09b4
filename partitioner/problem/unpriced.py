"""No objective: tables of zeros, to which prices can be added."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use
from ..plans.cost import CostUnit
from .problem import Chosen, FirstStep, Problem


class Unpriced:
    """Tables of zeros for plans with some steps, one for each pair of choices."""

    unit = CostUnit.BYTES

    def __init__(self, factors: tuple[int, ...]) -> None:
        self._factors = factors
        self._tables: WeakKeyDictionary[OperatorChoices, dict[TensorChoices, Counts]] = WeakKeyDictionary()

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the steps."""
        return self._factors

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return zeros for every pair of choices."""
        known = self._tables.setdefault(operator, {})
        if tensor not in known:
            known[tensor] = np.zeros((len(operator.sequences), len(tensor.sequences)), np.int64)
        return known[tensor]

    def alone(self, problem: Problem, number: int, choices: OperatorChoices) -> None:
        """Return None: nothing costs."""

    def total(self, chosen: Chosen) -> int:
        """Return 0."""
        return 0

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Return 0."""
        return 0

    def in_any_order(self, groups: int) -> None:
        """Return None: there is nothing to bound."""
