"""Messages of a group: the gradients of its variables wait for each other and travel together."""

from __future__ import annotations

from dataclasses import dataclass

from ....dataflow.graph import Graph
from ....machines.machine import Machine
from ....programs.gathering import gather
from ....programs.messages import Messages, messages
from ....programs.program import PartitionedGraph
from ....simulator.simulate import simulate
from ....simulator.timeline import Timeline
from .gradient_groups import gradient_groups
from .strategy import SyncStrategy


@dataclass(frozen=True, slots=True)
class MergedProgram:
    """The programs of a strategy whose groups travel together."""

    program: PartitionedGraph
    """The programs, in which the gradients of a group wait for each other."""

    messages: Messages
    """One message for each pair of workers and each tick."""

    def simulate(self, machine: Machine) -> Timeline:
        """Simulate one iteration. Raises MachineError as `tofu.simulate`."""
        return simulate(self.program, machine, messages=self.messages)


def merge(graph: Graph, program: PartitionedGraph, strategy: SyncStrategy) -> MergedProgram:
    """Let the gradients of each group travel together in the programs of a strategy's plan.

    They do already if the strategy says so.
    """
    gathered = program if strategy.together else gather(program, gradient_groups(graph, strategy))
    return MergedProgram(gathered, messages(gathered, ahead=0))
