"""Messages of a group: the all-reduces of its variables wait for each other and travel together.

A gradient that something besides its update reads cannot wait, so it keeps its place. A variable in several
parts belongs to the group of the first part that is reduced.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....dataflow.graph import Graph, Role
from ....machines.machine import Machine
from ....programs.gathering import gather
from ....programs.messages import Messages, messages
from ....programs.program import PartitionedGraph
from ....simulator.simulate import simulate
from ....simulator.timeline import Timeline
from .strategy import AllReduce, SyncStrategy
from .variables import find_variables


@dataclass(frozen=True, slots=True)
class MergedProgram:
    """The programs of a strategy whose groups travel together."""

    program: PartitionedGraph
    """The programs, in which all-reduces of a group wait for each other."""

    messages: Messages
    """One message for each pair of workers and each tick."""

    def simulate(self, machine: Machine) -> Timeline:
        """Simulate one iteration. Raises MachineError as `tofu.simulate`."""
        return simulate(self.program, machine, messages=self.messages)


def gradient_groups(graph: Graph, strategy: SyncStrategy) -> list[list[int]]:
    """Return for each group the gradients that can wait for each other, by number."""
    variables = find_variables(graph)
    updates = {update.index for each in variables for update in each.updates}
    used = {t for each in graph.operations if each.index not in updates for t in each.inputs}
    numbers = {tensor.name: tensor.index for tensor in graph.tensors}
    found: dict[int, list[int]] = {}
    for variable in variables:
        parts = strategy.variables[variable.tensor.name].parts
        group = next((part.group for part in parts if isinstance(part, AllReduce)), None)
        if group is not None:
            mine = (numbers[name] for name in variable.together)
            found.setdefault(group, []).extend(
                t for t in mine if graph.tensors[t].role is Role.GRADIENT and t not in used
            )
    return [found[group] for group in sorted(found)]


def merge(graph: Graph, program: PartitionedGraph, strategy: SyncStrategy) -> MergedProgram:
    """Let the all-reduces of each group travel together in the programs of a strategy's plan."""
    gathered = gather(program, gradient_groups(graph, strategy))
    return MergedProgram(gathered, messages(gathered, ahead=0))
