"""Score a user's layouts: every operation takes the strategy that is best for them.

    fc1_weight: [0, 0, 1]       one dimension per step
    conv*_weight: 0             that dimension at every step; shell patterns stand for all that match
    softmax_label: null         replicated
    data: [0, null, 0]

A tensor's name takes precedence over patterns, and a pattern over those that follow it. The recursive search
lays out all other tensors, given the layouts of these. Tensors that share storage, and tensors that tied
operations produce, must have the same layout or be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from ...dataflow.graph import Graph
from ...errors import PlanError
from ...support.strict_documents import read_document
from ...support.wording import alternatives
from ..layouts.choices import operator_choices, splittable, tensor_choices
from ..layouts.step_split import Dimensions, Strategies
from ..plans.cost import Cost
from ..plans.unproven import unbounded
from ..problem.constraints import Pin
from ..problem.problem import Link, Problem
from ..problem.sequences import candidates
from ..problem.solution import Solution
from .recursive import recursive

Layouts = Mapping[str, int | Sequence[int | None] | None]
"""Maps a tensor's name or a pattern to a dimension for all steps, None to replicate, or one per step."""

CANDIDATE_LIMIT = 512
"""If an operation has more strategies, only those near the recursive search's are tried."""


def read_layouts(path: Path) -> Layouts:
    """Read layouts from a YAML or JSON file. Raises PlanError naming the file and the place in it."""
    value = read_document(path, "layout file")
    if not isinstance(value, dict):
        raise PlanError(
            f"the layout file {str(path)!r} must be an object that maps tensors to their dimensions"
        )
    for name, choice in value.items():
        entries = choice if isinstance(choice, list) else [choice]
        if not all(entry is None or (type(entry) is int and 0 <= entry < 64) for entry in entries):
            raise PlanError(
                f"the layout file {str(path)!r}: {name!r} is {str(choice)[:60]}; give a dimension, null to "
                f"replicate, or a list with one of these per step"
            )
    return value


def layout_pins(graph: Graph, layouts: Layouts) -> list[Pin]:
    """Return one pin per tensor. Raises PlanError for names and patterns that match no tensor."""
    names = [tensor.name for tensor in graph.tensors]
    pins: dict[str, Pin] = {}
    for pattern, choice in sorted(layouts.items(), key=lambda entry: entry[0] not in names):
        matching = [pattern] if pattern in names else [n for n in names if fnmatchcase(n, pattern)]
        if not matching:
            raise PlanError(
                f"the layouts name {pattern!r}, which is not a tensor{alternatives(pattern, names)}"
            )
        entries = (choice,) if choice is None or isinstance(choice, int) else tuple(choice)
        for name in matching:
            pins.setdefault(name, Pin(name, entries, "tensor"))
    return list(pins.values())


def manual(problem: Problem, workers: int) -> Solution:
    """Return the best strategies for the layouts that the problem's restrictions pin."""
    plan = recursive(problem, workers)
    if not plan.factors:
        return plan
    of_operator: list[list[Link]] = [[] for _ in problem.operators]
    for link in problem.links:
        of_operator[link.operator].append(link)
    best = _BestStrategies(problem, plan)
    chosen = [best.of(number, links) for number, links in enumerate(of_operator)]
    cost = sum(cost for _, cost in chosen)
    return replace(
        plan,
        strategies=tuple(strategies for strategies, _ in chosen),
        cost=Cost(cost, plan.cost.unit),
        lower_bound=Cost(min(plan.lower_bound.value, cost), plan.cost.unit),
        unproven=unbounded(plan.unproven),
    )


class _BestStrategies:
    """Finds the best strategies for layouts. Equal operations on equal layouts are computed once."""

    def __init__(self, problem: Problem, plan: Solution) -> None:
        self._problem = problem
        self._plan = plan
        self._cost = problem.objective.table
        self._known: dict[object, tuple[Strategies, int]] = {}

    def of(self, number: int, links: Sequence[Link]) -> tuple[Strategies, int]:
        """Return the cheapest strategies of an operation class for the plan's layouts, and their cost."""
        problem, plan = self._problem, self._plan
        bound, restriction = problem.operators[number], problem.restrictions.operators.get(number)
        chosen = plan.strategies[number]
        layouts: list[tuple[tuple[int, ...], Dimensions]] = [
            (problem.shapes[link.tensor], plan.dimensions[link.tensor]) for link in links
        ]
        key = (
            bound,
            chosen,
            restriction,
            *((k.use, k.weight, at) for k, at in zip(links, layouts, strict=True)),
        )
        if key not in self._known:
            sequences, _ = candidates(splittable(bound), plan.factors, chosen, CANDIDATE_LIMIT)
            allowed = [s for s in sequences if restriction is None or restriction.allows(s)]
            operator = operator_choices(bound, allowed, plan.factors)
            costs = np.zeros(len(allowed), np.int64)
            for link, (shape, dimensions) in zip(links, layouts, strict=True):
                tensor = tensor_choices(shape, [dimensions], plan.factors)
                costs += self._cost(operator, tensor, link.use, link.weight)[:, 0]
            least = int(costs.argmin())
            self._known[key] = allowed[least], int(costs[least])
        return self._known[key]
