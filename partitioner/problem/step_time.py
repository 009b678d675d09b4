"""The objective `step-time`: the time of an iteration on a machine, as tables.

    table[o, t, use][s, d]  =  max over levels l of   latency(l) + bytes(l) / (groups(l) * bandwidth(l))
    alone[o][s]             =  max over workers of    the time in which one computes its box of o
    cost of a plan          =  sum of all tables after the last step, in picoseconds

So an operation takes as long as its slowest worker, a transfer as its slowest level, and nothing overlaps.
Programs overlap computations with transfers, so the simulator finds less time. It decides between the
plans that searches find (`api.partition`). After some steps, each of the remaining groups computes as one
worker. Implemented in: `transfer_time` (bytes by level), `StepTime.alone` (computations).
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import flattened
from ...machines.machine import Machine
from ...simulator.times import NANOSECONDS, TaskTimes
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use
from ..plans.cost import PICOSECONDS_PER_SECOND, CostUnit
from .problem import Chosen, FirstStep, Problem
from .transfer_time import TransferTime

PICOSECONDS = PICOSECONDS_PER_SECOND // NANOSECONDS
"""Picoseconds in a nanosecond."""


class StepTime:
    """Tables in picoseconds for the first `workers` devices of a machine. Deterministic.

    Raises MachineError if the machine has too few devices or divides them unevenly.
    """

    unit = CostUnit.PICOSECONDS

    def __init__(self, machine: Machine, workers: int, times: TaskTimes) -> None:
        self._transfers = TransferTime(machine, workers, latency=True)
        self._workers = workers
        self._times = times
        self._alone: dict[tuple[OperatorChoices, tuple[str, ...]], Counts] = {}

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the steps that follow the machine's levels."""
        return self._transfers.factors(workers)

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return the time of the transfers for every pair of choices, see `TransferTime.table`."""
        return self._transfers.table(operator, tensor, use, weight)

    def alone(self, problem: Problem, number: int, choices: OperatorChoices) -> Counts:
        """Return the time in which the slowest worker computes its box, by choice; 0 for one worker."""
        if self._workers == 1:
            return np.zeros(len(choices.sequences), np.int64)
        operation = problem.leaders[number]
        tensors = (*operation.inputs, *operation.outputs)
        key = choices, tuple(problem.graph.tensors[tensor].dtype for tensor in tensors)
        if key not in self._alone:
            count, groups = choices.boxes.shape[:2]
            workers = np.tile(np.arange(groups) * (self._workers // groups), count)
            boxes = flattened(choices.boxes)
            each = self._times(operation, workers, boxes).reshape(count, groups)
            self._alone[key] = each.max(axis=1) * PICOSECONDS
        return self._alone[key]

    def total(self, chosen: Chosen) -> int:
        """Score a whole plan: the tables of its choices alone, added up; 0 for one worker."""
        problem, total = chosen.problem, self._transfers.total(chosen)
        for number, bound in enumerate(problem.operators):
            choices = self._transfers.one_operator(bound, chosen.strategies[number])
            total += int(self.alone(problem, number, choices).item()) * problem.members[number]
        return total

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Return 0: nothing is proven of later steps."""
        return 0

    def in_any_order(self, groups: int) -> None:
        """Return None: the order of the steps decides which levels transfers cross."""
