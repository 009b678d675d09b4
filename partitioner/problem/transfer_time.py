"""The objective `time`: the time of a plan's traffic over the links of a machine, as tables.

    table[o, t, use][s, d]  =  max over levels l of   bytes(l) / (groups(l) * bandwidth(l))
    cost of a plan          =  sum of all tables after the last step, in picoseconds

Here `bytes(l)` are those that workers fetch from outside their groups of level `l`, over `groups(l)` links
with `bandwidth(l)` each way, as if the links of a level shared the load evenly. A transfer takes as long as
its slowest level, and a plan as long as the sum of its transfers. A step's cost in bytes counts an element
that a group lacks once, however many of its workers fetch it. The time counts every fetch.

The steps of the search are mapped onto the machine's levels: every level that divides a group into `n`
takes the prime factors of `n` as its steps. So the groups after a level's steps are that level's groups, and
elements that workers fetch from outside their own group cross that level or one further out. Implemented in:
`TransferTime.factors` (steps), `crossing` (elements of `bytes(l)`), `table` (the maximum).
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ...analyzer.bind.bound import ITEM_BYTES, Bound
from ...analyzer.indices.region import Boxes, Shape, volume
from ...machines.machine import Machine
from ..costs.box_counts import communication, fetched_elements, overlap
from ..layouts.choices import Counts, OperatorChoices, TensorChoices, operator_choices, tensor_choices
from ..layouts.step_split import Dimensions, Strategies, prime_factors
from ..layouts.uses import Use
from ..plans.cost import PICOSECONDS_PER_SECOND, CostUnit
from .problem import Chosen, FirstStep, Problem


class TransferTime:
    """Tables in picoseconds for the first `workers` devices of a machine. Deterministic.

    With `latency`, each transfer that crosses a level takes its latency as well; a link whose weight stands
    for several tensors counts as often as it has tensors of 32-bit elements.

    Raises MachineError if the machine has too few devices or divides them unevenly.
    """

    unit = CostUnit.PICOSECONDS

    def __init__(self, machine: Machine, workers: int, latency: bool = False) -> None:
        fan_out = machine.fan_out(workers)
        steps = [prime_factors(parts) for parts in fan_out]
        self._factors = tuple(factor for of_level in steps for factor in of_level)
        ends = accumulate(map(len, steps))
        groups = accumulate(fan_out, lambda a, b: a * b)
        self._levels = [
            (
                end,
                PICOSECONDS_PER_SECOND / (count * level.bytes_per_second),
                PICOSECONDS_PER_SECOND * level.latency_seconds if latency else 0.0,
            )
            for end, count, level, of_level in zip(ends, groups, machine.levels, steps, strict=True)
            if of_level
        ]
        self._tables: dict[tuple[OperatorChoices, TensorChoices, Use, int], Counts] = {}
        self._operators: dict[tuple[Bound, Strategies], OperatorChoices] = {}
        self._tensors: dict[tuple[Shape, Dimensions], TensorChoices] = {}
        self._owned: dict[tuple[TensorChoices, int], Boxes] = {}
        self._produced: dict[tuple[OperatorChoices, int], OperatorChoices] = {}

    def factors(self, workers: int) -> tuple[int, ...]:
        """Return the steps that follow the machine's levels."""
        return self._factors

    def table(self, operator: OperatorChoices, tensor: TensorChoices, use: Use, weight: int) -> Counts:
        """Return the time of every pair of choices, with `weight` bytes per element.

        If the choices have fewer steps than the machine, their groups count as single devices.
        """
        key = (operator, tensor, use, weight)
        if key not in self._tables:
            steps = len(operator.sequences[0])
            worst = np.zeros((len(operator.sequences), len(tensor.sequences)))
            begin = 0
            for end, picoseconds_per_byte, delay in self._levels:
                if begin < steps:
                    crossing = self.crossing(operator, tensor, use, min(end, steps))
                    taken = crossing * (weight * picoseconds_per_byte)
                    if delay:
                        taken += (crossing > 0) * (delay * weight / ITEM_BYTES)
                    np.maximum(worst, taken, out=worst)
                begin = end
            self._tables[key] = np.rint(worst).astype(np.int64)
        return self._tables[key]

    def total(self, chosen: Chosen) -> int:
        """Score a whole plan: the tables of its choices alone, added up."""
        problem, total = chosen.problem, 0
        for link in problem.links:
            operator = self.one_operator(problem.operators[link.operator], chosen.strategies[link.operator])
            tensor = self._one_tensor(problem.shapes[link.tensor], chosen.dimensions[link.tensor])
            total += int(self.table(operator, tensor, link.use, link.weight).item())
        return total

    def one_operator(self, bound: Bound, strategies: Strategies) -> OperatorChoices:
        """Return a choice alone, made once."""
        key = bound, strategies
        if key not in self._operators:
            self._operators[key] = operator_choices(bound, [strategies], self._factors)
        return self._operators[key]

    def _one_tensor(self, shape: Shape, dimensions: Dimensions) -> TensorChoices:
        """Return a layout alone, made once."""
        key = shape, dimensions
        if key not in self._tensors:
            self._tensors[key] = tensor_choices(shape, [dimensions], self._factors)
        return self._tensors[key]

    def bound(self, problem: Problem, first: FirstStep) -> int:
        """Return 0: later steps decide how the groups of the first step share links, so nothing is proven."""
        return 0

    def alone(self, problem: Problem, number: int, choices: OperatorChoices) -> None:
        """Return None: computations are not counted."""

    def in_any_order(self, groups: int) -> None:
        """Return None: the order of the steps decides which levels transfers cross."""

    def crossing(
        self, operator: OperatorChoices, tensor: TensorChoices, use: Use, end: int
    ) -> npt.NDArray[np.float64]:
        """Count the elements that workers fetch from outside their groups of the first `end` steps."""
        steps = len(operator.sequences[0])
        if end == steps:
            return communication(operator, tensor, use).astype(np.float64)
        if not isinstance(use, int):
            owned = self._group_owned(tensor, end)[None]
            needed = [operator.inputs[name][:, None] for name in use]
            return fetched_elements(needed, owned).astype(np.float64)
        groups = self._groups(operator, end)
        workers, parts = operator.boxes.shape[1], groups.boxes.shape[1]
        produced = np.repeat(groups.outputs[use], workers // parts, axis=1)[:, None]
        owned = tensor.regions[None]
        everything = operator.terms[:, None] * volume(owned).sum(axis=-1)
        within = (operator.terms // groups.terms)[:, None] * overlap(owned, produced).sum(axis=-1)
        crossing: npt.NDArray[np.float64] = (everything - within).astype(np.float64)
        return crossing

    def _group_owned(self, tensor: TensorChoices, end: int) -> Boxes:
        """Return the region that each worker's group owns together: `[choices, workers, dimensions, 2]`."""
        key = (tensor, end)
        if key not in self._owned:
            prefixes = [sequence[:end] for sequence in tensor.sequences]
            regions = tensor_choices(tensor.shape, prefixes, self._factors[:end]).regions
            members = tensor.regions.shape[1] // regions.shape[1]
            self._owned[key] = np.repeat(regions, members, axis=1)
        return self._owned[key]

    def _groups(self, operator: OperatorChoices, end: int) -> OperatorChoices:
        """Return the operator split over the groups alone."""
        key = (operator, end)
        if key not in self._produced:
            prefixes = [sequence[:end] for sequence in operator.sequences]
            self._produced[key] = operator_choices(operator.bound, prefixes, self._factors[:end])
        return self._produced[key]
