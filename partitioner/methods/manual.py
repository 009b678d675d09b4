"""Plans of a user's own: scored, if they say how tensors lie, or taken as they are, if they say it all.

If only tensors have forms, every operation takes the strategy that is best for them, and the recursive search
lays out all other tensors, given the layouts of these. Tensors that share storage, and tensors that tied
operations produce, must have the same layout or be left out. If operations have forms too, nothing is left to
search, and `find_plan` composes the plan. `written_plan` describes what users write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...dataflow.graph import Graph
from ...errors import PlanError
from ..layouts.choices import Counts, OperatorChoices, operator_choices, splittable, tensor_choices
from ..layouts.forms import Form
from ..layouts.step_split import Dimensions, Strategies, plain_steps
from ..plans.compose import by_name
from ..plans.cost import Cost
from ..plans.unproven import unbounded
from ..plans.written_plan import WrittenPlan, decode_written_plan, read_written_plan
from ..problem.constraints import Pin
from ..problem.links import Link
from ..problem.problem import Problem
from ..problem.sequences import candidates
from ..problem.solution import Solution
from .recursive import recursive

Layouts = WrittenPlan | Mapping[str, object] | str | Path
"""A written plan: as a value, as the entries of a document, or as the path of a file."""

CANDIDATE_LIMIT = 512
"""If an operation has more strategies, only those near the recursive search's are tried."""


def read_layouts(layouts: Layouts, workers: int) -> WrittenPlan:
    """Return the plan that layouts stand for. Raises PlanError naming the place of what is wrong."""
    match layouts:
        case WrittenPlan():
            return layouts
        case str() | Path():
            return read_written_plan(Path(layouts), workers)
        case Mapping():
            return decode_written_plan(dict(layouts), workers)
        case _:
            raise PlanError(
                f"layouts are a {type(layouts).__name__}; give a dict from names to forms, or a file's path"
            )


def layout_pins(graph: Graph, tensors: Mapping[str, Form]) -> list[Pin]:
    """Return one pin per tensor that has a form. Raises PlanError for keys that match no tensor."""
    chosen = by_name("tensor", tensors, [tensor.name for tensor in graph.tensors])
    return [Pin(name, plain_steps(form), "tensor") for name, form in chosen.items()]


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
        self._known: dict[object, tuple[OperatorChoices, Counts]] = {}

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
            self._known[key] = operator, costs
        operator, costs = self._known[key]
        costs = costs + problem.alone(number, operator)
        least = int(costs.argmin())
        return operator.sequences[least], int(costs[least])
