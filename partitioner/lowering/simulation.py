"""The simulation of a plan whose tasks and holdings are going to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ...programs.parts import Holding
from ...simulator.versions import HeldCopy
from ..layouts.parts import holdings
from ..layouts.step_split import Layout
from ..plans.assignment import Tasks
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
    held = _Holdings(plan)
    layouts = {t.name: plan.layouts[t.name] for t in graph.tensors if t.alias is None}
    return Simulation(
        graph,
        machine,
        plan.workers,
        Tasks(graph, plan.strategies, plan.factors),
        {name: held.of(layout) for name, layout in layouts.items()},
        stops={name: held.of(layout.stop) for name, layout in layouts.items() if layout.stop is not None},
        copies={name: held.copies(name) for name in plan.copies},
        order=plan.written_order,
        times=times,
    )


class _Holdings:
    """The holdings of a plan. Equal forms are expanded once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[Layout, tuple[Holding, ...]] = {}

    def of(self, layout: Layout) -> tuple[Holding, ...]:
        """Return who holds which parts of a tensor."""
        found = self._known.get(layout)
        if found is None:
            found = self._known[layout] = holdings(layout)
        return found

    def copies(self, tensor: str) -> list[HeldCopy]:
        """Return the copies of a tensor."""
        shape, factors = self._plan.layouts[tensor].shape, self._plan.factors
        return [
            HeldCopy(self.of(Layout(shape, copy.form, factors)), copy.readers, copy.source)
            for copy in self._plan.copies[tensor]
        ]
