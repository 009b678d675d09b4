"""An independent check of a plan and of the programs lowered from it.

This package shares no code with search and lowering. It knows regions, graphs and the analysis of
descriptions (`Bound`). It splits boxes and counts bytes itself, in Python's integers, and trusts nothing that
a plan states. It establishes, in this order:

1. The plan is for this graph, these shapes and this worker count.
2. Every layout covers its tensor; every element is owned once or by whole replicas; aliases agree.
3. The boxes of every operation cover its iteration space exactly once (apart from replicas), so every element
   of every output is produced once per term of a reduction, and the terms cover the reduction once. An
   operation that reads terms of a sum covers it once for each, and is linear in what it reads.
4. The order runs every operation once, after those that make what it reads and before those that overwrite
   it. A copy is made of what is there already, for operations that read the tensor, and has what they read.
5. The stated bytes, for each step and in all, are those that move.
6. (`check_program`) In the programs, every region that is read is in the buffer it is read from. Every buffer
   is filled with exactly its region, from buffers that already hold the pieces. The bytes that cross between
   workers are those that the plan states.
7. (`check_memory`) No value is overwritten while it is needed, and no two instructions race.

It does not prove the lower bounds that the plan states, only that none is above the cost of the plan or the
step that it is stated for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ...dataflow.graph import Graph, Operation, Tensor
from ...errors import PlanError
from ...programs.plain_regions import overlapping
from ...support.wording import counted
from ...tdl.ast import Reducer
from ..layouts.forms import At, Form, Partial
from ..plans.plan import Plan, require_graph, require_plan
from .plain_counts import (
    by_holder,
    check_covered,
    check_source,
    fetched_elements,
    needed_parts,
    summed_elements,
)
from .plain_forms import PlainParts, plain_parts, terms_of
from .plain_tasks import PlainTasks, check_terms

ADVICE = "the plan was changed, or its method has a defect: partition the graph again"


def verify(graph: Graph, plan: Plan) -> None:
    """Raise PlanError naming the first fault of a plan for `graph`, by points 1 to 5 above.

    `check_program` is point 6, `check_memory` point 7. Raises GraphError for a value that is not a graph.
    """
    require_graph(graph)
    require_plan(plan)
    _check_subject(graph, plan)
    try:
        _PlanCheck(graph, plan).run()
    except PlanError as error:
        raise PlanError(f"{error}; {ADVICE}") from error


def check_workers(plan: Plan, workers: int) -> None:
    """Raise PlanError if a plan is for another number of workers."""
    if plan.workers != workers:
        raise PlanError(
            f"the plan is for {counted(plan.workers, 'worker')}, not for {workers}; partition again with "
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
        self._operators: dict[tuple[object, ...], PlainTasks] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._versions: dict[tuple[int, int], PlainParts] = {}
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._named = {each.name: each for each in graph.operations}

    def run(self) -> None:
        plan, graph = self._plan, self._graph
        turns = self._turns()
        for tensor in graph.tensors:
            self._check_tensor(tensor)
        copied = self._check_copies(turns)
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

    def _turns(self) -> dict[str, int]:
        """Return when each operation runs: its place in the order, once the order is checked."""
        tensors, overwriter = self._graph.tensors, dict[int, str]()
        order = [*self._named] if self._plan.order is None else self._plan.order
        turns = {name: turn for turn, name in enumerate(order)}
        times = Counter(self._named.keys())
        times.subtract(order)
        for name, missing in times.items():
            if missing:
                raise PlanError(
                    f"operation {name!r} is {order.count(name)} times in the order, but "
                    f"{order.count(name) + missing} times in the graph"
                )
        for operation in (self._named[name] for name in order):
            place = f"the order runs {operation.name!r}"
            for tensor in operation.inputs:
                read, maker = tensors[tensor].name, self._maker.get(tensor)
                if maker is not None and turns[maker.name] >= turns[operation.name]:
                    raise PlanError(f"{place}, which reads {read!r}, before {maker.name!r}, which makes it")
                if tensor in overwriter:
                    raise PlanError(
                        f"{place}, which reads {read!r}, after {overwriter[tensor]!r}, which overwrites it"
                    )
            for tensor in operation.outputs:
                alias = tensors[tensor].alias
                if alias is not None:
                    overwriter[alias] = operation.name
        return turns

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
        check_terms(whole, held, place)
        if layout.via is not None:
            between = self._parts(tensor.index, layout.via, plan.factors, f"{place}, on the way")
            check_terms(whole, between, f"{place}, on the way")
        lasting = tensor.role.persistent or tensor.index in self._graph.outputs
        if terms_of(held) > 1 and (lasting or tensor.index not in self._maker):
            raise PlanError(f"{place} is never reduced: its {terms_of(held)} terms are not summed")
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
        named = [step for step in range(len(plan.factors)) if step in numbers]
        if numbers != [*named, *([None] if None in numbers else [])]:
            raise PlanError(
                f"the plan names steps {numbers} as not proven; expected rising numbers below "
                f"{len(plan.factors)}, and None for all steps at the end"
            )
        for unproven in plan.unproven:
            step, bound = unproven.step, unproven.lower_bound_bytes
            if bound is None:
                continue
            if step is not None and len(plan.step_cost_bytes) < len(plan.factors):
                raise PlanError(
                    f"the plan states a lower bound of {bound} bytes for step {step + 1}, but no bytes of "
                    "its steps"
                )
            moved = plan.cost_bytes if step is None else plan.step_cost_bytes[step]
            if bound > moved:
                what = "all steps" if step is None else f"step {step + 1}"
                raise PlanError(
                    f"the plan states a lower bound of {bound} bytes for {what}, above the {moved} moved"
                )

    def _check_copies(self, turns: dict[str, int]) -> int:
        """Check all copies; return the bytes that move to make them."""
        copies = self._plan.copies
        unknown = sorted(copies.keys() - {tensor.name for tensor in self._graph.tensors})
        if unknown:
            raise PlanError(f"the plan copies tensor {unknown[0]!r}, which is not in the graph")
        return sum(self._copied(tensor, turns) for tensor in self._graph.tensors if tensor.name in copies)

    def _copied(self, tensor: Tensor, turns: dict[str, int]) -> int:
        """Check a tensor's copies; return the bytes that move to make them."""
        versions = [self._layout(tensor.index, len(self._plan.factors))]
        begins, moved = [-1], 0
        for number, copy in enumerate(self._plan.copies[tensor.name], 1):
            place = f"copy {number} of tensor {tensor.name!r}"
            if not 0 <= copy.source < number:
                raise PlanError(f"{place} is made from version {copy.source}, which does not exist before it")
            parts = self._parts(tensor.index, copy.form, self._plan.factors, place)
            for (worker, _), regions in by_holder(parts).items():
                if any(overlapping(regions)):
                    raise PlanError(f"{place}: worker {worker} would hold some elements twice")
            moved += summed_elements(versions[copy.source], parts, place) * tensor.itemsize
            check_source(versions[copy.source], parts, place)
            versions.append(parts)
            if not copy.readers:
                raise PlanError(f"{place} is read by nothing")
            for name in copy.readers:
                reader = self._named.get(name)
                if reader is None or tensor.index not in reader.inputs:
                    raise PlanError(f"{place} is for {name!r}, which does not read the tensor")
                if (reader.index, tensor.index) in self._versions:
                    raise PlanError(f"{place} is for {name!r}, which reads another version as well")
                self._versions[reader.index, tensor.index] = parts
            begins.append(min(turns[name] for name in copy.readers))
            if begins[-1] < begins[copy.source]:
                raise PlanError(f"{place} is made before version {copy.source}, from which it is made")
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
        tasks = self._tasks(operation, form, factors, steps)
        total = 0
        names: dict[int, tuple[str, ...]] = {}
        for name, tensor in zip(operation.bound.description.tensor_names, operation.inputs, strict=True):
            if name in operation.bound.reads:
                names[tensor] = (*names.get(tensor, ()), name)
        partial: list[str] = []
        for tensor, read in names.items():
            copied = self._versions.get((operation.index, tensor))
            held = self._layout(tensor, steps) if copied is None else copied
            if copied is not None:
                what = f"operation {operation.name!r} reads a copy of {self._graph.tensors[tensor].name!r}"
                check_covered(needed_parts(tasks, copied, read), copied, what)
            total += self._count(key, tasks, tensor, read, held)
            if terms_of(held) > 1:
                self._check_read(operation, tensor, tasks, terms_of(held))
                partial.extend(read)
        if tasks.reads > 1 and not operation.bound.linear_in(partial):
            raise PlanError(
                f"operation {operation.name!r} reads terms of {', '.join(partial) or 'nothing'}, but is not "
                "linear in that"
            )
        for output, tensor in enumerate(operation.outputs):
            total += self._count(key, tasks, tensor, output, self._layout(tensor, steps))
        return total

    def _check_read(self, operation: Operation, tensor: int, tasks: PlainTasks, terms: int) -> None:
        """Check that an operation reads every term of a sum, in the sum's own element type."""
        place, name = f"operation {operation.name!r}", self._graph.tensors[tensor].name
        if tasks.reads != terms:
            raise PlanError(f"{place} reads {tasks.reads} terms of {name!r}, which has {terms}")
        types = {self._graph.tensors[each].dtype for each in (tensor, *operation.outputs)}
        if len(types) > 1:
            raise PlanError(f"{place} reads terms of {name!r} and changes their type: {sorted(types)}")
        maker = self._maker[tensor]
        form, factors = _first_steps(
            self._plan.strategies[maker.name], self._plan.factors, len(self._plan.factors)
        )
        reducer = self._tasks(maker, form, factors, len(self._plan.factors)).reducer
        if reducer is not Reducer.SUM:
            raise PlanError(f"{place} reads terms of {name!r}, which are combined by {reducer}")

    def _tasks(self, operation: Operation, form: Form, factors: Sequence[int], steps: int) -> PlainTasks:
        key = (operation.bound, form, steps)
        if key not in self._operators:
            self._operators[key] = PlainTasks(operation.bound, form, factors, f"operation {operation.name!r}")
        return self._operators[key]

    def _count(
        self,
        operator: tuple[object, ...],
        tasks: PlainTasks,
        tensor: int,
        use: tuple[str, ...] | int,
        held: PlainParts,
    ) -> int:
        """Count the bytes that move between an operation and one tensor."""
        name = self._graph.tensors[tensor].name
        via = self._plan.layouts[name].via
        key = (operator, use, id(held), via)
        if key not in self._counts:
            self._counts[key] = self._counted(tasks, tensor, use, held, via)
        return self._counts[key] * self._graph.tensors[tensor].itemsize

    def _counted(
        self, tasks: PlainTasks, tensor: int, use: tuple[str, ...] | int, held: PlainParts, via: Form | None
    ) -> int:
        if not isinstance(use, int):
            return fetched_elements(tasks, held, use)
        place = f"tensor {self._graph.tensors[tensor].name!r}"
        made = tasks.outputs[use]
        if via is None or terms_of(made) == terms_of(held):
            return summed_elements(made, held, place)
        between = self._parts(tensor, via, self._plan.factors, f"{place}, on the way")
        return summed_elements(made, between, f"{place}, on the way") + summed_elements(between, held, place)


def _first_steps(form: Form, factors: Sequence[int], steps: int) -> tuple[Form, Sequence[int]]:
    """Return a form and the factors of the first steps; forms that are not steps have only all of them."""
    if isinstance(form, tuple) and len(form) == len(factors):
        return form[:steps], factors[:steps]
    return form, factors


def _stepped(forms: Iterable[Form]) -> bool:
    return all(
        isinstance(f, tuple) and not any(isinstance(entry, At | Partial) for entry in f) for f in forms
    )
