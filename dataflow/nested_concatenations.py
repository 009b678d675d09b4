"""Concatenations that begin like an earlier one read that one's result.

    a = Concat(x, y)          a = Concat(x, y)
    b = Concat(x, y, z)  ->   b = Concat(a, z)

The layers of a dense block each concatenate the results of all earlier layers. Written like that, n layers
have n^2 / 2 inputs and gradient terms, and every layer is a neighbour of every other one for a search of
plans. Nested, they are a chain, whose elements are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..operators.library.registry import get
from ..operators.stages.attributes import Attributes
from .node import Entry, Node


@dataclass(slots=True)
class _Beginning:
    """The first inputs of some concatenations."""

    result: Entry | None = None
    """The concatenation of these inputs and no others; None if there is none so far."""

    longer: dict[Any, _Beginning] = field(default_factory=dict)
    """The beginnings with one more input."""


def nested_concatenations(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Return what each node becomes if concatenations read the longest earlier one that they can.

    `nodes` are in topological order, and so is the result. Names and outputs stay.
    """
    concatenation = get("Concat")
    made: dict[Node, Node] = {}
    beginnings: dict[int, _Beginning] = {}
    for node in nodes:
        inputs = tuple([replaced(entry, made) for entry in node.inputs])
        made[node] = node if inputs == node.inputs else replace(node, inputs=inputs)
        if node.operator is concatenation:
            beginning = beginnings.setdefault(node.attributes.integer("dim"), _Beginning())
            made[node] = _nested(made[node], beginning)
    return made


def replaced(entry: Entry, made: Mapping[Node, Node]) -> Entry:
    """Return the same output of what a node becomes."""
    return Entry(made[entry.node], entry.output)


def _nested(node: Node, beginning: _Beginning) -> Node:
    """Return what a concatenation becomes; later ones may begin with it."""
    earlier, count = None, 0
    for number, entry in enumerate(node.inputs):
        if beginning.result is not None:
            earlier, count = beginning.result, number
        beginning = beginning.longer.setdefault(entry, _Beginning())
    found = node if earlier is None else _with_inputs(node, (earlier, *node.inputs[count:]))
    beginning.result = beginning.result or Entry(found, 0)
    return found


def _with_inputs(node: Node, inputs: tuple[Entry, ...]) -> Node:
    """Return the concatenation of other inputs."""
    return replace(node, inputs=inputs, attributes=Attributes({**node.attributes, "num_args": len(inputs)}))
