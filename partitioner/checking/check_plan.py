"""An independent check of a plan and of the programs lowered from it.

This file shares no code with search and lowering. It knows regions, graphs and the analysis of descriptions
(`Bound`). It splits boxes and counts bytes itself, in Python's integers, and trusts nothing that a plan
states. It establishes, in this order:

1. The plan is for this graph, these shapes and this worker count.
2. Every layout covers its tensor; every element is owned once or by whole replicas; aliases agree.
3. The boxes of every operation cover its iteration space exactly once (apart from replicas), so every element
   of every output is produced once per term of a reduction, and the terms cover the reduction once.
4. The stated bytes, for each step and in all, are those that move.
5. (`check_program`) In the programs, every region that is read is in the buffer it is read from. Every buffer
   is filled with exactly its region, from buffers that already hold the pieces. The bytes that cross between
   workers are those that the plan states.
6. (`check_memory`) No value is overwritten while it is needed, and no two instructions race.

It does not prove the lower bounds that the plan states, only that none is above the cost of the plan or the
step that it is stated for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Region, to_region
from ...dataflow.graph import Graph, Operation
from ...errors import PlanError
from ...programs.plain_regions import check_tiling, common, size, split_region
from ..plans.plan import Plan

Boxes = tuple[Region, ...]

ADVICE = "the plan was changed, or its method has a defect: partition the graph again"


def verify(graph: Graph, plan: Plan) -> None:
    """Raise PlanError naming the first fault of a plan for `graph`, by points 1 to 4 above.

    `check_program` is point 5, `check_memory` point 6.
    """
    _check_subject(graph, plan)
    try:
        _PlanCheck(graph, plan).run()
    except PlanError as error:
        raise PlanError(f"{error}; {ADVICE}") from error


def check_workers(plan: Plan, workers: int) -> None:
    """Raise PlanError if a plan is for another number of workers."""
    if plan.workers != workers:
        raise PlanError(
            f"the plan is for {plan.workers} workers, not for {workers}; partition again with "
            f"--workers {workers}"
        )


def _check_subject(graph: Graph, plan: Plan) -> None:
    for what, planned, present in (
        ("tensor", plan.layouts, [tensor.name for tensor in graph.tensors]),
        ("operation", plan.strategies, [operation.name for operation in graph.operations]),
    ):
        differing = sorted(set(planned).symmetric_difference(present))
        if differing:
            where = "plan" if differing[0] in planned else "graph"
            raise PlanError(
                f"the plan is for another graph: {what} {differing[0]!r} exists only in the {where} "
                f"({len(differing)} names differ in all); partition {graph.name!r} again"
            )
    for tensor in graph.tensors:
        planned_shape = plan.layouts[tensor.name].shape
        if planned_shape != tensor.shape:
            raise PlanError(
                f"the plan is for other shapes: tensor {tensor.name!r} has shape {planned_shape} in the "
                f"plan and {tensor.shape} in the graph; use the batch size and the number of micro-batches "
                "that the plan was made with"
            )
    if prod(plan.factors) != plan.workers:
        raise PlanError(
            f"the plan's factors {plan.factors} do not multiply to {plan.workers} workers; {ADVICE}"
        )
    plan.check_graph(graph)


class _PlanCheck:
    """Checks one plan; equal operations with equal choices are checked once per number of steps."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph = graph
        self._plan = plan
        self._owned: dict[tuple[object, ...], Boxes] = {}
        self._operators: dict[tuple[object, ...], _Split] = {}
        self._counts: dict[tuple[object, ...], int] = {}

    def run(self) -> None:
        plan, graph = self._plan, self._graph
        for tensor in graph.tensors:
            layout = plan.layouts[tensor.name]
            place = f"tensor {tensor.name!r}"
            if layout.factors != plan.factors:
                raise PlanError(
                    f"{place} is split by {layout.factors}, but the plan's factors are {plan.factors}"
                )
            if len(layout.dimensions) != len(plan.factors):
                raise PlanError(
                    f"{place} has {len(layout.dimensions)} choices, but the plan has {len(plan.factors)} "
                    "steps"
                )
            for dimension in layout.dimensions:
                if dimension is not None and not 0 <= dimension < len(tensor.shape):
                    raise PlanError(f"{place} of shape {tensor.shape} has no dimension {dimension} to split")
            check_tiling(
                tuple((0, n) for n in tensor.shape), self._layout(tensor.index, len(plan.factors)), place
            )
            if tensor.alias is not None:
                overwritten = graph.tensors[tensor.alias].name
                other = plan.layouts[overwritten].dimensions
                if layout.dimensions != other:
                    raise PlanError(
                        f"{place} overwrites {overwritten!r}, but their steps split the dimensions "
                        f"{layout.dimensions} and {other}; both must be the same"
                    )
        totals = [self._total(steps) for steps in range(len(plan.factors) + 1)]
        counted = tuple(after - before for before, after in pairwise(totals))
        if counted != plan.step_cost_bytes or totals[-1] != plan.cost_bytes:
            raise PlanError(
                f"the plan states {plan.cost_bytes} bytes, by step {plan.step_cost_bytes}; its choices move "
                f"{totals[-1]}, by step {counted}"
            )
        self._check_unproven()
        if not 0 <= plan.lower_bound_bytes <= plan.cost_bytes:
            raise PlanError(
                f"the plan states a lower bound of {plan.lower_bound_bytes} bytes, which is not between 0 "
                f"and its cost of {plan.cost_bytes}"
            )

    def _check_unproven(self) -> None:
        """Check that steps are named once and in order, and that bounds are at most the bytes moved."""
        plan = self._plan
        numbers = [unproven.step for unproven in plan.unproven]
        named = [step for step in range(len(plan.factors)) if step in numbers]
        if numbers != [*named, *([None] if None in numbers else [])]:
            raise PlanError(
                f"the plan names steps {numbers} as not proven; expected rising numbers below "
                f"{len(plan.factors)}, and None for all steps at the end"
            )
        for unproven in plan.unproven:
            step, bound = unproven.step, unproven.lower_bound_bytes
            moved = plan.cost_bytes if step is None else plan.step_cost_bytes[step]
            if bound is not None and bound > moved:
                what = "all steps" if step is None else f"step {step + 1}"
                raise PlanError(
                    f"the plan states a lower bound of {bound} bytes for {what}, above the {moved} moved"
                )

    def _layout(self, tensor: int, steps: int) -> Boxes:
        shape = self._graph.tensors[tensor].shape
        dimensions = self._plan.layouts[self._graph.tensors[tensor].name].dimensions[:steps]
        key = (shape, dimensions)
        if key not in self._owned:
            whole = tuple((0, extent) for extent in shape)
            self._owned[key] = split_region(whole, dimensions, self._plan.factors[:steps])
        return self._owned[key]

    def _total(self, steps: int) -> int:
        return sum(self._operation_bytes(operation, steps) for operation in self._graph.operations)

    def _operation_bytes(self, operation: Operation, steps: int) -> int:
        choices = self._plan.strategies[operation.name]
        key = (operation.bound, choices[:steps])
        if key not in self._operators:
            place = f"operation {operation.name!r}"
            if len(choices) != len(self._plan.factors):
                raise PlanError(
                    f"{place} has {len(choices)} choices, but the plan has {len(self._plan.factors)} steps"
                )
            self._operators[key] = _Split(operation.bound, choices[:steps], self._plan.factors[:steps], place)
        split = self._operators[key]
        total = 0
        names: dict[int, tuple[str, ...]] = {}
        for name, tensor in zip(operation.bound.description.tensor_names, operation.inputs, strict=True):
            if name in operation.bound.reads:
                names[tensor] = (*names.get(tensor, ()), name)
        for tensor, read in names.items():
            total += self._count(key, split, tensor, read, steps)
        for output, tensor in enumerate(operation.outputs):
            total += self._count(key, split, tensor, output, steps)
        return total

    def _count(
        self,
        operator: tuple[object, ...],
        split: _Split,
        tensor: int,
        source: tuple[str, ...] | int,
        steps: int,
    ) -> int:
        """Count the bytes that move between an operation and one tensor."""
        owned = self._layout(tensor, steps)
        key = (operator, source, id(owned))
        if key not in self._counts:
            self._counts[key] = (
                sum(
                    split.terms * size(own) - size(common(own, produced))
                    for own, produced in zip(owned, split.outputs[source], strict=True)
                )
                if isinstance(source, int)
                else sum(
                    size(region) - size(common(region, own))
                    for worker, own in enumerate(owned)
                    for region in {split.inputs[name][worker] for name in source}
                )
            )
        return self._counts[key] * self._graph.tensors[tensor].itemsize


class _Split:
    """One operator on the workers of the first steps: the checked regions that each reads and produces."""

    def __init__(
        self, bound: Bound, choices: Sequence[str | None], factors: Sequence[int], place: str
    ) -> None:
        variables = list(bound.variables)
        for choice in choices:
            if choice is not None and (choice not in variables or bound.kind(choice) is None):
                offered = [variable for variable in variables if bound.kind(variable) is not None]
                raise PlanError(
                    f"{place}: {bound.description.name} has no strategy along {choice!r}; its strategies are "
                    f"along {', '.join(offered) or 'no variable'}"
                )
        whole = tuple((0, bound.extents[variable]) for variable in variables)
        axes = [None if choice is None else variables.index(choice) for choice in choices]
        boxes = split_region(whole, axes, factors)
        check_tiling(whole, boxes, f"{place}, its iterations")
        reduced = [choice for choice in choices if choice is not None and bound.kind(choice) == "reduce"]
        reducers = {str(bound.reducer(choice)): choice for choice in reduced}
        if len(reducers) > 1:
            listed = " and ".join(f"{reducer} over {choice}" for reducer, choice in reducers.items())
            raise PlanError(f"{place}: its partial results would be combined by {listed}; choose one")
        self.terms = prod(
            factor for choice, factor in zip(choices, factors, strict=True) if choice in reduced
        )
        array = np.array(boxes, np.int64).reshape(len(boxes), len(variables), 2)
        regions = bound.input_regions(array)
        self.inputs = {name: _regions(regions[name]) for name in bound.reads}
        self.outputs = [_regions(produced) for produced in bound.output_regions(array)]
        for output, shape in zip(self.outputs, bound.output_shapes, strict=True):
            for term in self._by_term(boxes, variables, reduced, output):
                check_tiling(tuple((0, extent) for extent in shape), term, f"{place}, what it produces")

    def _by_term(
        self, boxes: Boxes, variables: list[str], reduced: Iterable[str], output: Boxes
    ) -> Iterable[Boxes]:
        """Return the regions of an output that are computed from the same part of the reduction."""
        axes = sorted({variables.index(variable) for variable in reduced})
        terms: dict[Region, list[Region]] = {}
        for box, region in zip(boxes, output, strict=True):
            terms.setdefault(tuple(box[axis] for axis in axes), []).append(region)
        return map(tuple, terms.values())


def _regions(boxes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Boxes:
    return tuple(to_region(box) for box in boxes)
