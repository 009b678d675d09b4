"""The simulation of a plan whose tasks and holdings are going to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ...simulator.values import HeldCopy
from ..layouts.parts import holdings
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

    known = plan.of(graph)
    layouts = {t.name: plan.layouts[t.name] for t in graph.tensors if t.alias is None}
    stops = {name: layout.stop for name, layout in layouts.items() if layout.stop is not None}
    copies = {
        name: [
            HeldCopy(
                holdings(Layout(plan.layouts[name].shape, copy.form, plan.factors)), copy.readers, copy.source
            )
            for copy in listed
        ]
        for name, listed in plan.copies.items()
    }
    return Simulation(
        graph,
        machine,
        plan.workers,
        known.tasks,
        {name: holdings(layout) for name, layout in layouts.items()},
        stops={name: holdings(stop) for name, stop in stops.items()},
        copies=copies,
        order=plan.written_order,
        times=times,
    )
