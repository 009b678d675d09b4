"""A graph inside a node, prepared once however often it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .graph import reads
from .operand import OnnxOperand


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A branch or a body: its nodes in order, and the values that it holds."""

    graph: Any
    """The graph as the file has it."""

    held: Mapping[str, OnnxOperand]
    """Its initializers and the values of its Constant nodes, by name."""

    still: Sequence[Any]
    """The nodes that read nothing of its inputs, so that one run of them serves all steps."""

    moving: Sequence[Any]
    """The other nodes."""

    @property
    def given(self) -> list[str]:
        """Return the names of its inputs."""
        return [each.name for each in self.graph.input]

    @property
    def made(self) -> list[str]:
        """Return the names of its outputs."""
        return [each.name for each in self.graph.output]


def parted(graph: Any, nodes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the nodes that read nothing of a graph's inputs, and the others, both in order."""
    changing = {each.name for each in graph.input}
    still, moving = [], []
    for node in nodes:
        if changing.isdisjoint(reads(node)):
            still.append(node)
        else:
            moving.append(node)
            changing.update(node.output)
    return still, moving
