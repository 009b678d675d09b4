"""The simulation of a plan whose tasks and holdings are going to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph, Operation
from ...machines.machine import Machine
from ...operators.stages.bound_operator import BoundOperator
from ...programs.parts import Holding, Task
from ...simulator.versions import HeldCopy
from ..layouts.forms import Form
from ..layouts.parts import holdings, tasks
from ..layouts.step_split import Layout
from ..plans.plan import Plan

if TYPE_CHECKING:
    from ...simulator.simulation import Simulation
    from ...simulator.times import TaskTimes


def simulation(
    graph: Graph, plan: Plan, machine: Machine | str, times: TaskTimes | None = None
) -> Simulation:
    """Simulate one iteration of a plan, without making its programs, so that it can be changed.

    `times` gives the times of tasks, as in `tofu.simulator.Simulation`. Raises PlanError if the plan is not
    for this graph, and MachineError as `tofu.simulate`.
    """
    from ...simulator.simulation import Simulation

    plan.check_graph(graph)
    boxes = _Boxes(plan)
    layouts = {t.name: plan.layouts[t.name] for t in graph.tensors if t.alias is None}
    return Simulation(
        graph,
        machine,
        plan.workers,
        {operation.name: boxes.tasks(operation) for operation in graph.operations},
        {name: boxes.holdings(layout) for name, layout in layouts.items()},
        stops={n: boxes.holdings(layout.stop) for n, layout in layouts.items() if layout.stop is not None},
        copies={name: boxes.copies(name) for name in plan.copies},
        order=plan.written_order,
        times=times,
    )


class _Boxes:
    """The boxes of a plan. Equal forms are expanded once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tasks: dict[tuple[BoundOperator, Form], tuple[Task, ...]] = {}
        self._holdings: dict[Layout, tuple[Holding, ...]] = {}

    def tasks(self, operation: Operation) -> tuple[Task, ...]:
        """Return the tasks of an operation."""
        key = operation.bound, self._plan.strategies[operation.name]
        found = self._tasks.get(key)
        if found is None:
            found = self._tasks[key] = tasks(*key, self._plan.factors)
        return found

    def holdings(self, layout: Layout) -> tuple[Holding, ...]:
        """Return who holds which parts of a tensor."""
        found = self._holdings.get(layout)
        if found is None:
            found = self._holdings[layout] = holdings(layout)
        return found

    def copies(self, tensor: str) -> list[HeldCopy]:
        """Return the copies of a tensor."""
        shape, factors = self._plan.layouts[tensor].shape, self._plan.factors
        return [
            HeldCopy(self.holdings(Layout(shape, copy.form, factors)), copy.readers, copy.source)
            for copy in self._plan.copies[tensor]
        ]
