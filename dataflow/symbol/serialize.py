"""Symbols as MXNet's graph files: written as 0.11 or 1.x does, read from any version before 2.

A user's own operator is written with its description under `__description__`, so that it can be read back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import GraphError, OperatorError
from ...operators.declare import parse
from ...operators.library import registry
from ...operators.operator import Operator
from ..node import Entry, Node, auxiliary_variables, new_number, variable_node, visible_outputs
from ..settings import for_slot, for_start, mark, names_setting, of_slot
from .outputs import Outputs

DESCRIPTION = "__description__"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a version of MXNet writes: its number, the key of attributes, operators with another name."""

    version: int
    attributes: str
    renamed: Mapping[str, str]


DIALECTS: Mapping[str, Dialect] = {
    "0.11": Dialect(1100, "attr", {}),
    "1.x": Dialect(
        10901,
        "attrs",
        {
            "_mul": "elemwise_mul",
            "_sub": "elemwise_sub",
            "_div": "elemwise_div",
            "random_uniform": "_random_uniform",
            "random_normal": "_random_normal",
        },
    ),
}


def to_json(symbol: Outputs, dialect: str = "0.11") -> str:
    """Write a symbol, a line for each node; see `Symbol.tojson`. Raises GraphError for an unknown dialect."""
    if dialect not in DIALECTS:
        raise GraphError(f"there is no dialect {dialect!r}; known are {', '.join(DIALECTS)}")
    spoken = DIALECTS[dialect]
    nodes = symbol.nodes
    number = {node: index for index, node in enumerate(nodes)}
    auxiliary = auxiliary_variables(nodes)
    operators = {id(node.operator): node.operator for node in nodes if node.operator is not None}
    described = {key: str(operator) for key, operator in operators.items() if not _in_library(operator)}
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + len(node.outputs))

    versions = _versions(nodes, auxiliary)

    def entry(source: Entry, user: Node | None = None) -> list[int]:
        once = int(source.node in auxiliary)
        return [number[source.node], source.output, versions.get((user, source.node), once)]

    def written(node: Node) -> dict[str, Any]:
        operator = node.operator
        kind = "null" if operator is None else spoken.renamed.get(operator.name, operator.name)
        fields: dict[str, Any] = {"op": kind, "name": node.name}
        text = dict(node.text)
        if id(operator) in described:
            text[DESCRIPTION] = described[id(operator)]
        if text:
            fields[spoken.attributes] = text
        return {**fields, "inputs": [entry(source, node) for source in node.inputs]}

    rest = {
        "arg_nodes": [number[node] for node in nodes if node.is_variable],
        "node_row_ptr": rows,
        "heads": [entry(head) for head in symbol.heads],
        "attrs": {"mxnet_version": ["int", spoken.version]},
    }
    lines = ",\n".join(json.dumps(written(node)) for node in nodes)
    members = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in rest.items())
    return f'{{"nodes": [\n{lines}\n],\n{members}}}\n'


def _versions(nodes: Sequence[Node], auxiliary: Collection[Node]) -> dict[tuple[Node | None, Node], int]:
    """Return for each node and each auxiliary state that it takes how many nodes up to it have taken it."""
    count: Counter[Node] = Counter()
    found: dict[tuple[Node | None, Node], int] = {}
    for node in sorted(nodes, key=lambda each: each.number):
        for state in {entry.node for entry in node.inputs if entry.node in auxiliary}:
            count[state] += 1
            found[node, state] = count[state]
    return found


def read_json(text: str) -> tuple[Entry, ...]:
    """Read the outputs that `to_json` wrote, or MXNet. Raises GraphError, OperatorError."""
    try:
        graph = json.loads(text)
    except RecursionError:
        raise GraphError("this is not a graph file: it is nested too deeply") from None
    except ValueError as error:
        raise GraphError(f"this is not a graph file: {error}") from None
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        raise GraphError('this is not a graph file: an object with a list "nodes" is expected')
    nodes: list[Node] = []
    for fields, made in zip(graph["nodes"], _numbers(graph["nodes"]), strict=True):
        nodes.append(_read_node(fields, nodes, len(graph["nodes"]), made))
    heads = graph.get("heads")
    if not isinstance(heads, list) or not heads:
        raise GraphError('the graph file has no "heads", the list of its outputs')
    return tuple([_read_entry(head, nodes, len(nodes), "the list of heads") for head in heads])


def _numbers(listed: Sequence[Any]) -> list[int]:
    """Return the numbers of the nodes in a file: in the order of the versions of the states that they update,
    and of the file.
    """
    versions = [_version(fields) for fields in listed]
    order = sorted(range(len(listed)), key=lambda place: (versions[place], place))
    numbers = {place: new_number() for place in order}
    return [numbers[place] for place in range(len(listed))]


def _version(fields: Any) -> int:
    """Return the highest version of a node's inputs; 0 if it has none. Faults are left to `_read_node`."""
    inputs = fields.get("inputs") if isinstance(fields, dict) else None
    stated = [item[2] for item in inputs or () if isinstance(item, list) and len(item) == 3]
    return max((version for version in stated if type(version) is int), default=0)


def _read_node(fields: Any, nodes: list[Node], count: int, made: int) -> Node:
    place = f"node {len(nodes)}"
    if not isinstance(fields, dict):
        raise GraphError(f"{place} is {fields!r:.80}, expected an object")
    name, kind = fields.get("name"), fields.get("op")
    if not isinstance(name, str) or not isinstance(kind, str):
        raise GraphError(f'{place} lacks "op" or "name"')
    place = f"{place} ({kind} {name!r})"
    text = _read_text(fields, place)
    listed = fields.get("inputs", [])
    if not isinstance(listed, list):
        raise GraphError(f"{place}: inputs are {listed!r:.80}, expected a list")
    inputs = [_read_entry(item, nodes, count, place) for item in listed]
    if kind == "null":
        if inputs:
            raise GraphError(f"{place} is a variable and cannot have inputs")
        return variable_node(name, text)
    operator, text = _read_operator(kind, text, place)
    if operator.count_attribute is not None:
        text = {operator.count_attribute: str(len(inputs)), **text}
    try:
        attributes = operator.attributes(text)
    except OperatorError as error:
        raise OperatorError(f"{place}: {error}") from error
    slots = (*operator.arguments(attributes), *operator.auxiliary)
    if len(inputs) > len(slots):
        raise GraphError(f"{place} has {len(inputs)} inputs; {operator.name} takes {', '.join(slots)}")
    for slot, source in zip(slots, inputs, strict=False):
        _give(source.node, of_slot(text, slot))
    settings = {key: value for key, value in text.items() if key.startswith("__")}
    for slot in slots[len(inputs) :]:
        inherited = for_start(operator.starts, slot) | for_slot(settings, slot)
        inputs.append(Entry(variable_node(f"{name}_{slot}", inherited), 0))
    outputs = visible_outputs(operator, attributes)
    return Node(name, operator, tuple(inputs), attributes, text, outputs, number=made)


def _give(node: Node, settings: Mapping[str, str]) -> None:
    """Give a variable that was read the settings that an operator states for it."""
    if settings and node.is_variable:
        assert isinstance(node.text, dict)
        node.text.update(settings)


def _read_operator(kind: str, text: dict[str, str], place: str) -> tuple[Operator, dict[str, str]]:
    if DESCRIPTION in text:
        operator = parse(text[DESCRIPTION])
        return operator, {key: value for key, value in text.items() if key != DESCRIPTION}
    try:
        return registry.get(kind), text
    except OperatorError as error:
        raise OperatorError(f"{place}: {error}") from error


def _read_text(fields: Mapping[str, Any], place: str) -> dict[str, str]:
    """Return the node's attributes under the key of its version: "attrs", "attr" and, oldest, "param".

    Versions before 0.9 wrote settings without underscores. No such file has a user's own operator, whose
    attributes may have any name.
    """
    text: dict[str, str] = {}
    for key in ("param", "attr", "attrs"):
        found = fields.get(key, {})
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise GraphError(f"{place}: {key} must be an object whose values are text")
        text |= found
    if DESCRIPTION in text:
        return text
    return {mark(key) if names_setting(key) else key: value for key, value in text.items()}


def _read_entry(item: Any, nodes: list[Node], count: int, place: str) -> Entry:
    valid = isinstance(item, list) and len(item) in (2, 3) and all(type(part) is int for part in item)
    if not valid:
        raise GraphError(
            f"{place}: {item!r:.80} is not a reference; expected [node, output] or [node, output, version]"
        )
    number, index = item[:2]
    if not 0 <= number < count:
        raise GraphError(f"{place} refers to node {number}, but there are {count} nodes")
    if number >= len(nodes):
        raise GraphError(f"{place} refers to node {number}, which does not come before it: a cycle")
    node = nodes[number]
    if not 0 <= index < len(node.outputs):
        raise GraphError(f"{place} refers to output {index} of {node.name!r}, which has {len(node.outputs)}")
    return Entry(node, index)


def _in_library(operator: Operator) -> bool:
    try:
        return registry.get(operator.name) is operator
    except OperatorError:
        return False
