"""Updates of auxiliary states, such as running statistics, after a training iteration.

Nodes that share a state update it one after another, in the order in which they were made:

    first.state = f(state, what the first node computed)
    updated(state) = f(first.state, what the last node computed)

Only the last result overwrites the state, so that every node has read it before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..operators.stages.stage import Stage
from .builder import GraphBuilder
from .graph import Phase
from .node import Node


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """One node's update of a state."""

    node: Node
    """The node that updates it."""

    state: str
    """The operator's name for the state."""

    stage: Stage
    """The description of the new value."""

    tensors: Mapping[str, int]
    """The tensors that the stage may read, by name."""

    @property
    def target(self) -> int:
        """Return the tensor of the state."""
        return self.tensors[self.state]


class StateUpdates:
    """Adds updates to a graph in the making. `counts` tells how many each state will get, one by default."""

    def __init__(self, builder: GraphBuilder, counts: Mapping[int, int]) -> None:
        self._builder = builder
        self._counts = counts
        self._waiting: dict[int, list[StateUpdate]] = {}

    def add(self, update: StateUpdate) -> None:
        """Take an update; with the last one of its state, add the operations of all of them."""
        waiting = self._waiting.setdefault(update.target, [])
        waiting.append(update)
        if len(waiting) < self._counts.get(update.target, 1):
            return
        *earlier, last = sorted(waiting, key=lambda each: each.node.number)
        value = update.target
        for each in earlier:
            value = self._apply(each, value)
        self._overwrite(last, value)

    def _apply(self, update: StateUpdate, value: int) -> int:
        """Compute the state after an update that others follow, from its value before."""
        name = self._builder.unique_tensor_name(f"{update.node.name}.{update.state}")
        inputs = _inputs(update, value)
        return self._builder.apply(name, update.stage, inputs, [name], phase=Phase.UPDATE)[0]

    def _overwrite(self, update: StateUpdate, value: int) -> None:
        """Overwrite the state by its last value, computed from the one before."""
        name = self._builder.tensors[update.target].name
        self._builder.apply(
            f"update({name})",
            update.stage,
            _inputs(update, value),
            [f"updated({name})"],
            phase=Phase.UPDATE,
            aliases=[update.target],
        )


def _inputs(update: StateUpdate, value: int) -> list[int]:
    """Return the tensors that an update reads; of the state the value that earlier updates left."""
    found = [update.tensors[read] for read in update.stage.inputs]
    return [value if index == update.target else index for index in found]
