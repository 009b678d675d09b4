"""The simulation of a plan whose tasks and holdings are going to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ...simulator.versions import HeldCopy
from ..layouts.parts import Held
from ..layouts.step_split import Layout
from .assignment import Tasks
from .plan import Plan

if TYPE_CHECKING:
    from ...simulator.block_cache import KnownBlocks
    from ...simulator.simulation import Simulation
    from ...simulator.times import TaskTimes


def simulation(
    graph: Graph,
    plan: Plan,
    machine: Machine | str,
    times: TaskTimes | None = None,
    known: KnownBlocks | None = None,
) -> Simulation:
    """Simulate one iteration of a plan, without making its programs, so that it can be changed.

    `times` and `known` are those of `tofu.simulator.Simulation`. Raises PlanError if the plan is not
    for this graph, and MachineError as `tofu.simulate`.
    """
    from ...simulator.simulation import Simulation

    plan.check_graph(graph)
    held = Held()
    layouts = {t.name: plan.layouts[t.name] for t in graph.tensors if t.alias is None}
    return Simulation(
        graph,
        machine,
        plan.workers,
        Tasks(graph, plan.strategies, plan.factors),
        {name: held.of(layout) for name, layout in layouts.items()},
        stops={name: held.of(layout.stop) for name, layout in layouts.items() if layout.stop is not None},
        copies={name: _copies(plan, name, held) for name in plan.copies},
        order=plan.written_order,
        times=times,
        known=known,
    )


def _copies(plan: Plan, tensor: str, held: Held) -> list[HeldCopy]:
    """Return the copies of a tensor."""
    shape, factors = plan.layouts[tensor].shape, plan.factors
    return [
        HeldCopy(held.of(Layout(shape, copy.form, factors)), copy.readers, copy.source)
        for copy in plan.copies[tensor]
    ]
