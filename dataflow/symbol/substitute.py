"""Substitute other symbols for a network's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import GraphError
from ...support.wording import alternatives
from ..node import Entry, Node
from .outputs import Outputs


def substitute(
    symbol: Outputs, positional: Sequence[Outputs], named: Mapping[str, Outputs], name: str | None = None
) -> tuple[Entry, ...]:
    """Return the outputs; see `Symbol.__call__`. Nodes that no replaced argument reaches are shared."""
    arguments = symbol.list_arguments()
    if positional and named:
        raise GraphError("give the symbols either by position or by name, not both")
    if len(positional) > len(arguments):
        raise GraphError(f"{len(positional)} symbols are given, but there are {len(arguments)} arguments")
    given = {**dict(zip(arguments, positional, strict=False)), **named}
    for argument, value in given.items():
        if argument not in arguments:
            raise GraphError(f"the symbol has no argument {argument!r}{alternatives(argument, arguments)}")
        if not isinstance(value, Outputs) or len(value) != 1:
            raise GraphError(
                f"argument {argument!r} is replaced by {value!r}, expected a symbol of one output"
            )
    made: dict[Node, Node] = {}
    values: dict[Node, Entry] = {}
    for node in symbol.nodes:
        if node.is_variable:
            values[node] = given[node.name].heads[0] if node.name in given else Entry(node, 0)
            continue
        inputs = tuple([_replaced(entry, made, values) for entry in node.inputs])
        made[node] = node if inputs == node.inputs else replace(node, inputs=inputs)
    if name is not None:
        head = symbol.heads[0].node
        if symbol.name is None or head.is_variable:
            raise GraphError("name= renames the node of a symbol that is one operator's; this one is not")
        made[head] = replace(made[head], name=name)
    return tuple([_replaced(head, made, values) for head in symbol.heads])


def _replaced(entry: Entry, made: Mapping[Node, Node], values: Mapping[Node, Entry]) -> Entry:
    if entry.node.is_variable:
        return values[entry.node]
    return Entry(made[entry.node], entry.output)
