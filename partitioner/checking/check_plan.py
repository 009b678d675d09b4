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
from ...dataflow.graph import Graph, Operation, Tensor
from ...errors import PlanError
from ...programs.plain_regions import check_tiling, common, size
from ..layouts.forms import At, Form
from ..plans.plan import Plan
from .plain_forms import PlainParts, plain_parts

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
    """Checks one plan; equal operations with equal forms are checked once per number of steps."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph = graph
        self._plan = plan
        self._held: dict[tuple[object, ...], PlainParts] = {}
        self._operators: dict[tuple[object, ...], _Tasks] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._versions: dict[tuple[int, int], PlainParts] = {}

    def run(self) -> None:
        plan, graph = self._plan, self._graph
        for tensor in graph.tensors:
            self._check_tensor(tensor)
        copied = sum(self._copied(tensor) for tensor in graph.tensors if tensor.name in plan.copies)
        steps = len(plan.factors)
        stepped = _stepped([*(layout.form for layout in plan.layouts.values()), *plan.strategies.values()])
        stepped = stepped and all(layout.via is None for layout in plan.layouts.values())
        stepped = stepped and not plan.copies
        totals = (
            [self._total(number) for number in range(steps + 1)]
            if stepped
            else [0, copied + self._total(steps)]
        )
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

    def _check_tensor(self, tensor: Tensor) -> None:
        """Check that the holdings of a tensor tile it, and that it is where what it overwrites is."""
        plan, place = self._plan, f"tensor {tensor.name!r}"
        layout = plan.layouts[tensor.name]
        if layout.factors != plan.factors:
            raise PlanError(
                f"{place} is split by {layout.factors}, but the plan's factors are {plan.factors}"
            )
        held = self._layout(tensor.index, len(plan.factors))
        whole = tuple((0, n) for n in tensor.shape)
        check_tiling(whole, [region for _, region in held], place)
        if layout.via is not None:
            between = self._parts(tensor.index, layout.via, plan.factors, f"{place}, on the way")
            check_tiling(whole, [region for _, region in between], f"{place}, on the way")
        if tensor.alias is not None:
            overwritten = self._graph.tensors[tensor.alias].name
            other = plan.layouts[overwritten].form
            if layout.form != other:
                raise PlanError(
                    f"{place} overwrites {overwritten!r}, but their forms are {layout.form} and {other}; "
                    "both must be the same"
                )

    def _check_unproven(self) -> None:
        """Check that steps are named once and in order, and that bounds are at most the bytes moved."""
        plan = self._plan
        numbers = [unproven.step for unproven in plan.unproven]
        named = [step for step in range(len(plan.step_cost_bytes)) if step in numbers]
        if numbers != [*named, *([None] if None in numbers else [])]:
            raise PlanError(
                f"the plan names steps {numbers} as not proven; expected rising numbers below "
                f"{len(plan.step_cost_bytes)}, and None for all steps at the end"
            )
        for unproven in plan.unproven:
            step, bound = unproven.step, unproven.lower_bound_bytes
            moved = plan.cost_bytes if step is None else plan.step_cost_bytes[step]
            if bound is not None and bound > moved:
                what = "all steps" if step is None else f"step {step + 1}"
                raise PlanError(
                    f"the plan states a lower bound of {bound} bytes for {what}, above the {moved} moved"
                )

    def _copied(self, tensor: Tensor) -> int:
        """Check a tensor's copies; return the bytes that move to make them."""
        versions = [self._layout(tensor.index, len(self._plan.factors))]
        moved = 0
        for number, copy in enumerate(self._plan.copies[tensor.name], 1):
            place = f"copy {number} of tensor {tensor.name!r}"
            if not 0 <= copy.source < number:
                raise PlanError(f"{place} is made from version {copy.source}, which does not exist before it")
            parts = self._parts(tensor.index, copy.form, self._plan.factors, place)
            for count, (worker, region) in enumerate(parts):
                for other, also in parts[:count]:
                    if worker == other and size(common(region, also)):
                        raise PlanError(f"{place}: worker {worker} would hold some elements twice")
            moved += _lacking(parts, versions[copy.source]) * tensor.itemsize
            versions.append(parts)
            readers = [o.index for o in self._graph.operations if o.name in copy.readers]
            if not readers or len(readers) != len(copy.readers):
                raise PlanError(f"{place} is read by {', '.join(copy.readers) or 'nothing'}")
            for reader in readers:
                if (reader, tensor.index) in self._versions:
                    name = self._graph.operations[reader].name
                    raise PlanError(f"{place} is read by {name!r}, which reads another version as well")
                self._versions[reader, tensor.index] = parts
        return moved

    def _layout(self, tensor: int, steps: int) -> PlainParts:
        shape, name = self._graph.tensors[tensor].shape, self._graph.tensors[tensor].name
        form, factors = _first_steps(self._plan.layouts[name].form, self._plan.factors, steps)
        return self._parts(tensor, form, factors, f"tensor {name!r} of shape {shape}")

    def _parts(self, tensor: int, form: Form, factors: Sequence[int], place: str) -> PlainParts:
        shape = self._graph.tensors[tensor].shape
        key = (shape, form, tuple(factors))
        if key not in self._held:
            whole = tuple((0, extent) for extent in shape)
            self._held[key] = plain_parts(form, whole, range(len(shape)), factors, prod(factors), place)
        return self._held[key]

    def _total(self, steps: int) -> int:
        return sum(self._operation_bytes(operation, steps) for operation in self._graph.operations)

    def _operation_bytes(self, operation: Operation, steps: int) -> int:
        form, factors = _first_steps(self._plan.strategies[operation.name], self._plan.factors, steps)
        key = (operation.bound, form, steps)
        if key not in self._operators:
            self._operators[key] = _Tasks(operation.bound, form, factors, f"operation {operation.name!r}")
        tasks = self._operators[key]
        total = 0
        names: dict[int, tuple[str, ...]] = {}
        for name, tensor in zip(operation.bound.description.tensor_names, operation.inputs, strict=True):
            if name in operation.bound.reads:
                names[tensor] = (*names.get(tensor, ()), name)
        for tensor, read in names.items():
            version = self._versions.get((operation.index, tensor))
            if version is None:
                total += self._count(key, tasks, tensor, read, steps)
            else:
                total += _moved(tasks, version, read) * self._graph.tensors[tensor].itemsize
        for output, tensor in enumerate(operation.outputs):
            total += self._count(key, tasks, tensor, output, steps)
        return total

    def _count(
        self, operator: tuple[object, ...], tasks: _Tasks, tensor: int, use: tuple[str, ...] | int, steps: int
    ) -> int:
        """Count the bytes that move between an operation and one tensor."""
        held = self._layout(tensor, steps)
        via = self._plan.layouts[self._graph.tensors[tensor].name].via
        key = (operator, use, id(held), via)
        if key not in self._counts:
            if via is None or tasks.terms == 1 or not isinstance(use, int):
                self._counts[key] = _moved(tasks, held, use)
            else:
                between = self._parts(tensor, via, self._plan.factors, "on the way")
                self._counts[key] = _moved(tasks, between, use) + _lacking(held, between)
        return self._counts[key] * self._graph.tensors[tensor].itemsize


class _Tasks:
    """One operator's tasks on the workers of the first steps: the checked regions of each."""

    def __init__(self, bound: Bound, form: Form, factors: Sequence[int], place: str) -> None:
        variables = list(bound.variables)
        whole = tuple((0, bound.extents[variable]) for variable in variables)
        parts = plain_parts(form, whole, variables, factors, prod(factors), place)
        boxes = [box for _, box in parts]
        check_tiling(whole, boxes, f"{place}, its iterations")
        cut = [v for axis, v in enumerate(variables) if any(box[axis] != whole[axis] for box in boxes)]
        for variable in cut:
            if bound.kind(variable) is None:
                offered = [v for v in variables if bound.kind(v) is not None]
                raise PlanError(
                    f"{place}: {bound.description.name} has no strategy along {variable!r}; its strategies "
                    f"are along {', '.join(offered) or 'no variable'}"
                )
        reduced = [variable for variable in cut if bound.kind(variable) == "reduce"]
        reducers = {str(bound.reducer(variable)): variable for variable in reduced}
        if len(reducers) > 1:
            listed = " and ".join(f"{reducer} over {variable}" for reducer, variable in reducers.items())
            raise PlanError(f"{place}: its partial results would be combined by {listed}; choose one")
        axes = [variables.index(variable) for variable in reduced]
        array = np.array(boxes, np.int64).reshape(len(boxes), len(variables), 2)
        regions = bound.input_regions(array)
        self.workers = [worker for worker, _ in parts]
        self.inputs = {name: _regions(regions[name]) for name in bound.reads}
        self.outputs = [_regions(produced) for produced in bound.output_regions(array)]
        self.terms = len({tuple(box[axis] for axis in axes) for box in boxes})
        for output, shape in zip(self.outputs, bound.output_shapes, strict=True):
            by_term: dict[Region, list[Region]] = {}
            for box, region in zip(boxes, output, strict=True):
                by_term.setdefault(tuple(box[axis] for axis in axes), []).append(region)
            for term in by_term.values():
                check_tiling(tuple((0, extent) for extent in shape), term, f"{place}, what it produces")


def _moved(tasks: _Tasks, held: PlainParts, use: tuple[str, ...] | int) -> int:
    """Count the elements that move between tasks and holdings: what is needed, less what is there."""
    if isinstance(use, int):
        made = list(zip(tasks.workers, tasks.outputs[use], strict=True))
        needed = tasks.terms * sum(size(region) for _, region in held)
    else:
        made = list({(w, tasks.inputs[name][task]) for name in use for task, w in enumerate(tasks.workers)})
        needed = sum(size(region) for _, region in made)
    return needed - _there(made, held)


def _lacking(needed: PlainParts, held: PlainParts) -> int:
    """Count the elements of regions that their workers do not hold."""
    return sum(size(region) for _, region in needed) - _there(needed, held)


def _there(needed: Iterable[tuple[int, Region]], held: PlainParts) -> int:
    """Count the elements of regions that their workers hold."""
    at: dict[int, list[Region]] = {}
    for worker, region in held:
        at.setdefault(worker, []).append(region)
    return sum(size(common(region, own)) for worker, region in needed for own in at.get(worker, []))


def _first_steps(form: Form, factors: Sequence[int], steps: int) -> tuple[Form, Sequence[int]]:
    """Return a form and the factors of the first steps; forms that are not steps have only all of them."""
    if isinstance(form, tuple) and len(form) == len(factors):
        return form[:steps], factors[:steps]
    return form, factors


def _stepped(forms: Iterable[Form]) -> bool:
    return all(isinstance(f, tuple) and not any(isinstance(entry, At) for entry in f) for f in forms)


def _regions(boxes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[Region, ...]:
    return tuple(to_region(box) for box in boxes)
