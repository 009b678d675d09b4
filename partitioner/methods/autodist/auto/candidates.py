"""Strategies that are compiled and simulated on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .....dataflow.graph import Graph
from .....machines.machine import Machine
from .....programs.messages import Messages
from .....programs.program import PartitionedGraph
from .....simulator.simulate import simulate
from .....simulator.timeline import Timeline
from ....plans.plan import Plan
from ..compiling import compile_strategy
from ..merging import merge
from ..strategy import SyncStrategy
from .model import SyncModel

Lower = Callable[[Graph, Plan], PartitionedGraph]
"""Makes programs of a plan, as `tofu.lower` does."""


@dataclass(frozen=True, slots=True)
class SyncCandidate:
    """A strategy that was simulated."""

    name: str
    """The builder, or how it was found."""

    strategy: SyncStrategy
    """The strategy."""

    plan: Plan
    """Its plan."""

    program: PartitionedGraph
    """The programs; all-reduces of a group wait for each other if messages are merged."""

    messages: Messages | None
    """The messages, if they are merged."""

    seconds: float
    """The simulated time of an iteration."""

    predicted_seconds: float
    """The time by the fast model."""


class Candidates:
    """Compiles and simulates strategies on a machine."""

    def __init__(self, graph: Graph, workers: int, machine: Machine, lower: Lower, merged: bool) -> None:
        self.graph = graph
        """The graph."""
        self.machine = machine
        """The machine."""
        self.workers = workers
        """The number of workers."""
        self._lower = lower
        self._merged = merged

    def simulated(
        self, name: str, strategy: SyncStrategy, model: SyncModel | None = None
    ) -> tuple[SyncCandidate, Timeline]:
        """Simulate a strategy."""
        strategy = replace(strategy, together=self._merged)
        plan = compile_strategy(self.graph, self.workers, strategy)
        graph = plan.graph or self.graph
        program, messages = self._lower(graph, plan), None
        if self._merged:
            both = merge(graph, program, strategy)
            program, messages = both.program, both.messages
        timeline = simulate(program, self.machine, messages=messages)
        predicted = timeline.seconds if model is None else model.seconds(strategy)
        return SyncCandidate(name, strategy, plan, program, messages, timeline.seconds, predicted), timeline
