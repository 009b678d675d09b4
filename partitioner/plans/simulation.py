"""Simulations of plans, whose tasks and holdings may change afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dataflow.graph import Graph
from ...machines.machine import Machine
from ...machines.machine_file import machine_of
from ...simulator.versions import HeldCopy
from ..layouts.parts import Computed, Held
from ..layouts.step_split import Layout
from .assignment import Tasks
from .plan import Plan

if TYPE_CHECKING:
    from ...simulator.block_cache import BlockCache
    from ...simulator.simulation import Simulation


class Simulations:
    """Simulations of plans of one graph on one machine, which share what they have in common."""

    def __init__(self, graph: Graph, machine: Machine | str) -> None:
        self._graph = graph
        self._machine = machine_of(machine)
        self._held = Held()
        self._homes = [tensor for tensor in graph.tensors if tensor.alias is None]
        self._computed = Computed()
        self._caches: dict[int, BlockCache] = {}

    def of(self, plan: Plan) -> Simulation:
        """Simulate one iteration of a plan, without making its programs.

        Raises PlanError if the plan is not for the graph, and MachineError as `tofu.simulate`.
        """
        from ...simulator.simulation import Simulation

        plan.check_graph(self._graph)
        held, layouts = self._held, {tensor.name: plan.layouts[tensor.name] for tensor in self._homes}
        return Simulation(
            self._graph,
            self._machine,
            plan.workers,
            Tasks(self._graph, plan.strategies, plan.factors, self._computed),
            {name: held.of(layout) for name, layout in layouts.items()},
            stops={name: held.of(layout.stop) for name, layout in layouts.items() if layout.stop is not None},
            copies={name: _copies(plan, name, held) for name in plan.copies},
            order=plan.written_order,
            cache=self._cache(plan.workers),
        )

    def _cache(self, workers: int) -> BlockCache:
        from ...simulator.block_cache import BlockCache

        if workers not in self._caches:
            self._machine.check_workers(workers)
            self._caches[workers] = BlockCache(self._graph, self._machine, workers)
        return self._caches[workers]


def simulation(graph: Graph, plan: Plan, machine: Machine | str) -> Simulation:
    """Simulate one iteration of a plan, see `Simulations`."""
    return Simulations(graph, machine).of(plan)


def _copies(plan: Plan, tensor: str, held: Held) -> list[HeldCopy]:
    """Return the copies of a tensor."""
    shape, factors = plan.layouts[tensor].shape, plan.factors
    return [
        HeldCopy(held.of(Layout(shape, copy.form, factors)), copy.readers, copy.source)
        for copy in plan.copies[tensor]
    ]
