"""Shape inference over a whole symbol, in both directions, to a fixed point.

Each operator infers what it can from the shapes around it; a node is looked at again only when a shape
next to it has become better known. Every extent is found at most once, so the work is linear in the size
of the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ...errors import ShapeError, TofuError
from ...operators.operator import Operator
from ...operators.shapes.shape_solver import PartialShape
from ...support.checked_argument import require, shown
from ...support.literals import literal
from ...support.wording import alternatives
from ..node import Entry, Node
from .outputs import Outputs, require_symbol

Table = dict[Node, list[PartialShape]]
"""For each node the shapes of its outputs; None in place of a shape or an extent that is unknown."""


def infer_symbol(symbol: Outputs, given: Mapping[str, Sequence[int | None] | None]) -> Table:
    """Infer everything that follows from shapes given by argument name and from those set on variables.

    Raises GraphError for a value that is not a symbol. Raises ShapeError for what are not shapes, for an
    unknown argument name, and if two shapes disagree.
    """
    require_symbol(symbol)
    require(isinstance(given, Mapping), given, "shapes", "shapes by name: {'data': (64, 3)}", ShapeError)
    nodes = symbol.nodes
    table: Table = {node: [None] * len(node.outputs) for node in nodes}
    variables = {node.name: node for node in nodes if node.is_variable}
    for node in variables.values():
        table[node][0] = _declared(node)
    for name, shape in given.items():
        if name not in variables:
            raise ShapeError(
                f"a shape is given for {name!r}, which is not an argument{alternatives(str(name), variables)}"
            )
        if shape is not None:
            table[variables[name]][0] = _partial(name, shape)
    _Inference(table, nodes).run()
    return table


def complete(symbol: Outputs, table: Table) -> None:
    """Raise ShapeError naming the unknown shapes, if there are any."""
    unknown = [
        (node.output_name(index), shape)
        for node in symbol.nodes
        for index, shape in enumerate(table[node])
        if shape is None or None in shape
    ]
    if not unknown:
        return
    names = {name for name, _ in unknown}
    variables = [node.name for node in symbol.nodes if node.is_variable and node.name in names]
    listed = ", ".join(f"{name} {show(shape)}" for name, shape in unknown[:8])
    more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
    advice = f"; give a shape for {', '.join(variables[:8])}" if variables else ""
    raise ShapeError(f"these shapes cannot be inferred: {listed}{more}{advice}")


def show(shape: PartialShape) -> str:
    """Return a shape for a message: `(32, ?)`, `unknown`."""
    if shape is None:
        return "unknown"
    inside = ", ".join("?" if extent is None else shown(extent) for extent in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _declared(node: Node) -> PartialShape:
    """Return the shape set on a variable, `__shape__`."""
    text = node.text.get("__shape__")
    if text is None:
        return None
    try:
        shape = literal(text)
    except ValueError:
        shape = None
    if not isinstance(shape, tuple | list):
        raise ShapeError(f"variable {node.name!r} has __shape__ {text[:80]!r}, expected a tuple of integers")
    return _partial(node.name, shape)


def _partial(name: str, shape: Sequence[int | None]) -> PartialShape:
    extents: list[int | None] = []
    fits = isinstance(shape, Iterable) and not isinstance(shape, str | bytes | Mapping)
    require(fits, shape, f"the shape of {name!r}", "a tuple of integers", ShapeError)
    for extent in shape:
        if extent is None:
            extents.append(None)
            continue
        if isinstance(extent, bool) or not hasattr(extent, "__index__") or extent < 0:
            raise ShapeError(
                f"the shape of {name!r} is {shown(tuple(shape))}; extents are integers from 0 on"
            )
        extents.append(extent.__index__() or None)
    return tuple(extents)


class _Inference:
    """The worklist over nodes whose surroundings have become better known."""

    def __init__(self, table: Table, nodes: Sequence[Node]) -> None:
        self.table = table
        self.users: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node in nodes:
            for entry in node.inputs:
                self.users[entry.node].append(node)
        self.queue = deque(node for node in nodes if not node.is_variable)
        self.queued = set(self.queue)
        self.known: dict[tuple[object, ...], Mapping[str, PartialShape]] = {}

    def run(self) -> None:
        while self.queue:
            node = self.queue.popleft()
            self.queued.remove(node)
            self.visit(node)

    def visit(self, node: Node) -> None:
        operator = node.operator
        assert operator is not None
        places = _places(node, operator)
        around = {slot: self.table[entry.node][entry.output] for slot, entry in places}
        inferred = self.infer(node, operator, around)
        for slot, entry in places:
            if inferred[slot] != self.table[entry.node][entry.output]:
                self.improve(node, entry, inferred[slot])

    def improve(self, source: Node, entry: Entry, shape: PartialShape) -> None:
        """Note a better shape and queue everyone else who sees it."""
        self.table[entry.node][entry.output] = shape
        for node in (entry.node, *self.users[entry.node]):
            if node is not source and not node.is_variable and node not in self.queued:
                self.queued.add(node)
                self.queue.append(node)

    def infer(
        self, node: Node, operator: Operator, around: Mapping[str, PartialShape]
    ) -> Mapping[str, PartialShape]:
        key = (id(operator), node.attributes, tuple(around.values()))
        inferred = self.known.get(key)
        if inferred is None:
            try:
                inferred = operator.infer(node.attributes, around)
            except ShapeError as error:
                raise ShapeError(f"{error}\n{self.surroundings(node, operator)}") from error
            except TofuError as error:
                raise error.saying(f"{node.name!r}: {error}\n{self.surroundings(node, operator)}") from error
            self.known[key] = inferred
        return inferred

    def surroundings(self, node: Node, operator: Operator) -> str:
        """Return the node, and for each input who produces it and with what shape."""
        made = f", made at {node.place}\n  whose" if node.place else ", whose"
        lines = [f"in {operator.name} {node.name!r}{made} inputs are"]
        for slot, entry in _places(node, operator)[: len(node.inputs)]:
            maker = entry.node.operator
            produced = "a variable" if maker is None else f"from {maker.name}"
            shape = show(self.table[entry.node][entry.output])
            lines.append(f"  {slot}: {entry.node.output_name(entry.output)!r} ({produced}) of shape {shape}")
        return "\n".join(lines)


def _places(node: Node, operator: Operator) -> list[tuple[str, Entry]]:
    """Return each slot of the operator, inputs and outputs, with the entry that is there."""
    slots = (*operator.arguments(node.attributes), *operator.auxiliary)
    outputs = operator.outputs(node.attributes)
    return [
        *zip(slots, node.inputs, strict=True),
        *((name, Entry(node, index)) for index, name in enumerate(outputs)),
    ]
