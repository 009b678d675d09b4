"""Symbols in which a concatenation that begins like an earlier one reads that one's result.

    a = Concat(x, y)          a = Concat(x, y)
    b = Concat(x, y, z)  ->   b = Concat(a, z)

The layers of a dense block each concatenate the results of all earlier layers. Written like that, n layers
have n^2 / 2 inputs and gradient terms, and every layer is a neighbour of every other one for a search of
plans. Nested, they are a chain, whose elements are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..dataflow.naming import NameScope
from ..dataflow.node import Entry, Node
from ..dataflow.symbol import Symbol
from ..dataflow.symbol.compose import apply
from ..operators.library.registry import get

CONCATENATION = "Concat"


@dataclass(slots=True)
class _Beginning:
    """The first inputs of some concatenations."""

    result: Entry | None = None
    """The concatenation of these inputs and no others; None if there is none so far."""

    longer: dict[Any, _Beginning] = field(default_factory=dict)
    """The beginnings with one more input."""


def nested_concatenations(symbol: Symbol) -> Symbol:
    """Return a symbol with the same outputs, whose concatenations read the longest earlier one they can."""
    concatenation = get(CONCATENATION)
    made: dict[Node, Node] = {}
    beginnings: dict[int, _Beginning] = {}
    for node in symbol.nodes:
        inputs = tuple([_replaced(entry, made) for entry in node.inputs])
        made[node] = node if inputs == node.inputs else replace(node, inputs=inputs)
        if node.operator is concatenation:
            beginning = beginnings.setdefault(node.attributes.integer("dim"), _Beginning())
            made[node] = _nested(made[node], beginning)
    return Symbol([_replaced(head, made) for head in symbol.heads])


def _replaced(entry: Entry, made: Mapping[Node, Node]) -> Entry:
    return Entry(made[entry.node], entry.output)


def _nested(node: Node, beginning: _Beginning) -> Node:
    """Return what a concatenation becomes; later ones may begin with it."""
    earlier, count = None, 0
    for number, entry in enumerate(node.inputs):
        if beginning.result is not None:
            earlier, count = beginning.result, number
        beginning = beginning.longer.setdefault(entry, _Beginning())
    found = node if earlier is None else _joined(node, earlier, count)
    beginning.result = beginning.result or Entry(found, 0)
    return found


def _joined(node: Node, earlier: Entry, count: int) -> Node:
    """Return the concatenation of an earlier result, instead of the first `count` inputs, and the others."""
    given = [Symbol([entry]) for entry in (earlier, *node.inputs[count:])]
    with NameScope():
        (found,) = apply(CONCATENATION, *given, name=node.name, dim=node.attributes.integer("dim")).heads
    return replace(found.node, place=node.place)
