"""Nodes of a symbol: variables and applied operators, and walks over them without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from ..errors import GraphError
from ..operators.operator import Operator
from ..operators.stages.attributes import Attributes
from .place import Place

new_number = count().__next__
"""Return the number of the next node that is made."""


class Entry(NamedTuple):
    """One output of a node, by number."""

    node: Node
    output: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A variable, or an operator applied to inputs."""

    name: str
    """The node's name in the symbol."""

    operator: Operator | None
    """The operator; None if the node is a variable."""

    inputs: tuple[Entry, ...]
    """The outputs of other nodes that it takes: arguments, then auxiliary states."""

    attributes: Attributes
    """The operator's attributes, checked and complete."""

    text: Mapping[str, str]
    """The user's attributes as MXNet writes them in files: strings, settings such as `__shape__` included."""

    outputs: tuple[str, ...]
    """The names of the visible outputs."""

    place: Place | None = None
    """The line of the user's script that made the node; None if no script did."""

    number: int = field(default_factory=new_number)
    """Its place in the order in which nodes were made, which is the order of the calls. Nodes that share an
    auxiliary state update it in this order."""

    @property
    def is_variable(self) -> bool:
        return self.operator is None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all visible outputs, in order."""
        return tuple([Entry(self, index) for index in range(len(self.outputs))])

    def output_name(self, index: int) -> str:
        """Name an output: `fc1_output`, `split0_output2`; a variable's output has the variable's name."""
        return self.name if self.operator is None else f"{self.name}_{self.outputs[index]}"

    def __repr__(self) -> str:
        kind = "variable" if self.operator is None else self.operator.name
        return f"<{kind} {self.name}>"


_NO_ATTRIBUTES = Attributes({})


def variable_node(name: str, text: Mapping[str, str], place: Place | None = None) -> Node:
    """Make a variable with this name and these settings."""
    return Node(name, None, (), _NO_ATTRIBUTES, text, ("output",), place)


def visible_outputs(operator: Operator, attributes: Attributes) -> tuple[str, ...]:
    """Return the suffixes of an operator's outputs: `output`, or `output0`, `output1`, ..."""
    count = len(operator.outputs(attributes))
    if count == 1:
        return ("output",)
    return operator.visible_names[:count] or tuple(f"output{index}" for index in range(count))


def topological(heads: Iterable[Entry]) -> tuple[Node, ...]:
    """List every node that the heads depend on, inputs before users: depth first, left to right."""
    seen: set[Node] = set()
    order: list[Node] = []
    for head in heads:
        stack: list[Node] = [head.node]
        while stack:
            node = stack[-1]
            if node in seen:
                stack.pop()
                continue
            pending = [entry.node for entry in node.inputs if entry.node not in seen]
            if pending:
                stack.extend(reversed(pending))
                continue
            seen.add(node)
            order.append(node)
            stack.pop()
    return tuple(order)


def nearest(node: Node, count: int) -> tuple[Node, ...]:
    """List a node and up to `count` nodes that it depends on, those with the shortest paths to it first."""
    found, seen = [node], {node}
    for each in found:  # grows
        for entry in each.inputs:
            if len(found) <= count and entry.node not in seen:
                seen.add(entry.node)
                found.append(entry.node)
    return tuple(found)


def auxiliary_variables(nodes: Sequence[Node]) -> set[Node]:
    """Variables that operators update. Raises GraphError for one that is an argument elsewhere."""
    auxiliary: set[Node] = set()
    for node in nodes:
        if node.operator is not None and node.operator.auxiliary:
            states = node.inputs[-len(node.operator.auxiliary) :]
            for entry, state in zip(states, node.operator.auxiliary, strict=True):
                if not entry.node.is_variable:
                    raise GraphError(
                        f"{state} of {node.name!r} is updated in place, so it must be a variable, "
                        f"not {entry.node.output_name(entry.output)!r}"
                    )
                auxiliary.add(entry.node)
    for node in nodes:
        if node.operator is None or not auxiliary:
            continue
        for entry in node.inputs[: len(node.inputs) - len(node.operator.auxiliary)]:
            if entry.node in auxiliary:
                raise GraphError(
                    f"{entry.node.name!r} is an auxiliary state and cannot be an argument of {node.name!r}"
                )
    return auxiliary


def check_unique_names(nodes: Iterable[Node]) -> None:
    """Raise GraphError if two of the nodes have the same name."""
    first: dict[str, Node] = {}
    for node in nodes:
        other = first.setdefault(node.name, node)
        if other is not node:
            raise duplicate_name(other, node)


def duplicate_name(first: Node, second: Node) -> GraphError:
    """Make the error for two nodes of one graph that share a name."""
    advice = (
        "create the variable once and use it in both places"
        if first.is_variable and second.is_variable
        else "give one of them another name="
    )
    return GraphError(
        f"two nodes of the graph are named {first.name!r}: {_describe(first)} and {_describe(second)}; "
        f"{advice}"
    )


def _describe(node: Node) -> str:
    made = f" ({node.place})" if node.place else ""
    if node.operator is None:
        return f"a variable{made}"
    inputs = ", ".join(entry.node.output_name(entry.output) for entry in node.inputs)
    return f"{node.operator.name}({inputs}){made}"
