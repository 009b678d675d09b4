"""The simulation of a plan whose tasks and holdings are going to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph
from ...errors import PlanError
from ...machines.machine import Machine
from ...support.wording import counted
from ..layouts.parts import holdings
from ..plans.plan import Plan

if TYPE_CHECKING:
    from ...simulator.simulation import Simulation
    from ...simulator.times import TaskTimes


def simulation(
    graph: Graph, plan: Plan, machine: Machine | str, times: TaskTimes | None = None
) -> Simulation:
    """Simulate one iteration of a plan, without making its programs, so that it can be changed.

    `times` gives the times of tasks, as in `tofu.simulator.Simulation`. Raises PlanError if the plan is not
    for this graph or keeps copies, and MachineError as `tofu.simulate`.
    """
    from ...simulator.simulation import Simulation

    known = plan.of(graph)
    if plan.copies:
        name = next(iter(plan.copies))
        raise PlanError(
            f"the plan keeps copies of {counted(len(plan.copies), 'tensor')}, such as {name!r}; simulate the "
            f"program that `tofu.lower` makes of it, or partition with keep=False"
        )
    layouts = {t.name: plan.layouts[t.name] for t in graph.tensors if t.alias is None}
    stops = {name: layout.stop for name, layout in layouts.items() if layout.stop is not None}
    return Simulation(
        graph,
        machine,
        plan.workers,
        known.tasks,
        {name: holdings(layout) for name, layout in layouts.items()},
        stops={name: holdings(stop) for name, stop in stops.items()},
        order=plan.written_order,
        times=times,
    )
