"""The computations of every worker, and whether one has much more than the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph
from ..layouts.forms import Form
from ..layouts.step_split import split_operation
from ..plans.plan import Plan

UNEVEN = 1.1
"""The load of the busiest worker, over the mean, above which reports tell of it."""


@dataclass(frozen=True, slots=True)
class ComputedLoad:
    """The floating-point operations of every worker in one iteration."""

    flops: tuple[int, ...]
    """The operations of each; those that opaque functions hide are not counted."""

    @property
    def busiest(self) -> int:
        """Return the number of the worker with the most operations."""
        return self.flops.index(max(self.flops))

    @property
    def ratio(self) -> float:
        """Return the most operations of a worker over the mean of all; 1 if nothing is counted."""
        total = sum(self.flops)
        return max(self.flops) * len(self.flops) / total if total else 1.0


def computed_load(graph: Graph, plan: Plan) -> ComputedLoad:
    """Count the floating-point operations of every worker; equal operations are counted once."""
    forms = [plan.strategies[operation.name] for operation in graph.operations]
    alike: dict[tuple[int, int], tuple[Bound, Form]] = {}
    members: Counter[tuple[int, int]] = Counter()
    for operation, form in zip(graph.operations, forms, strict=True):
        key = id(operation.bound), id(form)
        alike[key] = operation.bound, form
        members[key] += 1
    flops = np.zeros(plan.workers, np.int64)
    for key, (bound, form) in alike.items():
        tasks = split_operation(bound, form, plan.factors)
        counted = bound.flops_of(tasks.boxes)
        if counted is not None:
            np.add.at(flops, tasks.workers, counted * members[key])
    return ComputedLoad(tuple(flops.tolist()))
