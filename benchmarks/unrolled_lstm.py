"""Graphs with the shape of unrolled LSTMs in training, as placers read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tofu.partitioner.methods.placement.graph import PlacementGraph
from tofu.support.integer_lists import IntegerLists
from tofu.support.integers import Integers

BATCH, HIDDEN, BYTES = 64, 1024, 4
STATE = BATCH * HIDDEN * BYTES
WEIGHT = 4 * HIDDEN * HIDDEN * BYTES
SMALL, PRODUCT = 6_000, 60_000
"""Nanoseconds of operations on elements, and of products of matrices."""


@dataclass
class _Nodes:
    """Nodes that make one value each, in the graph's order."""

    names: list[str] = field(default_factory=list)
    """The name of each node."""

    nanoseconds: list[int] = field(default_factory=list)
    """The time of each node."""

    bytes: list[int] = field(default_factory=list)
    """The size of each node's value."""

    readers: list[list[int]] = field(default_factory=list)
    """The nodes that read each value."""

    after: list[list[int]] = field(default_factory=list)
    """The nodes that overwrite what each node reads."""

    leader: list[int] = field(default_factory=list)
    """The node whose worker each node shares."""

    forward: list[int] = field(default_factory=list)
    """The forward node of each backward one; of others their own number."""

    def add(
        self, name: str, nanoseconds: int, made: int, inputs: Sequence[int | None] = (), forward: int = -1
    ) -> int:
        """Add a node; return its number, which is also that of its value."""
        node = len(self.names)
        for value in {each for each in inputs if each is not None}:
            self.readers[value].append(node)
        self.names.append(name)
        self.nanoseconds.append(nanoseconds)
        self.bytes.append(made)
        self.readers.append([])
        self.after.append([])
        self.leader.append(node)
        self.forward.append(forward if forward >= 0 else node)
        return node

    def small(self, name: str, *inputs: int | None, made: int = STATE, forward: int = -1) -> int:
        """Add an operation on elements."""
        return self.add(name, SMALL, made, inputs, forward)

    def product(self, name: str, *inputs: int | None, made: int = STATE, forward: int = -1) -> int:
        """Add a product of matrices."""
        return self.add(name, PRODUCT, made, inputs, forward)


@dataclass(frozen=True)
class _Cell:
    """Values of a cell that its neighbours or its backward operations read."""

    first: int
    """The product with which the cell begins."""

    gates: tuple[int, int, int, int]
    """The gates before their activation."""

    active: tuple[int, int, int, int]
    """The gates after their activation."""

    cell: int
    """The state that the next step reads."""

    squashed: int
    """That state after its activation."""

    hidden: int
    """The value that the layer above and the next step read."""


def unrolled_lstm(layers: int, steps: int) -> tuple[PlacementGraph, Integers]:
    """Return a training graph of about 37 nodes for each layer and step, and the forward one of each node."""
    nodes = _Nodes()
    weights = [
        [nodes.add(f"{name}{layer}", 0, made) for name, made in (("W", WEIGHT), ("U", WEIGHT), ("b", STATE))]
        for layer in range(layers)
    ]
    cells: dict[tuple[int, int], _Cell] = {}
    for step in range(steps):
        below: int | None = None
        for layer in range(layers):
            cells[layer, step] = _forward(nodes, weights[layer], below, cells.get((layer, step - 1)))
            below = cells[layer, step].hidden
    sums: dict[int, list[int]] = {}
    later: dict[int, tuple[int, int]] = {}
    for step in reversed(range(steps)):
        above: int | None = None
        for layer in reversed(range(layers)):
            given = cells.get((layer - 1, step)), cells.get((layer, step - 1))
            above = _backward(nodes, layer, weights[layer], cells[layer, step], given, above, later, sums)
    for layer in range(layers):
        for weight, gradient in zip(weights[layer], sums[layer], strict=True):
            update = nodes.small("update", weight, gradient, made=0)
            nodes.leader[update] = weight
            for reader in nodes.readers[weight]:
                if reader != update:
                    nodes.after[reader].append(update)
    return _graph(nodes, 3 * layers), np.array(nodes.forward)


def _forward(nodes: _Nodes, weights: list[int], below: int | None, before: _Cell | None) -> _Cell:
    """Add the forward operations of a cell."""
    hidden = None if before is None else before.hidden
    cell = None if before is None else before.cell
    first = nodes.product("x@W", below, weights[0], made=4 * STATE)
    fed = nodes.product("h@U", hidden, weights[1], made=4 * STATE)
    joined = nodes.small("add", first, fed, weights[2], made=4 * STATE)
    gates = tuple(nodes.small(f"slice{gate}", joined) for gate in range(4))
    active = tuple(nodes.small(f"active{gate}", gates[gate]) for gate in range(4))
    kept = nodes.small("keep", active[0], cell)
    new = nodes.small("new", active[1], active[2])
    cell = nodes.small("cell", kept, new)
    squashed = nodes.small("tanh", cell)
    hidden = nodes.small("hidden", squashed, active[3])
    return _Cell(first, gates, active, cell, squashed, hidden)  # type: ignore[arg-type]


def _backward(
    nodes: _Nodes,
    layer: int,
    weights: list[int],
    cell: _Cell,
    given: tuple[_Cell | None, _Cell | None],
    above: int | None,
    later: dict[int, tuple[int, int]],
    sums: dict[int, list[int]],
) -> int:
    """Add the backward operations of a cell; return the gradient of what it reads from below."""
    below, before = given
    at = cell.first
    of_hidden, of_cell = later.get(layer, (None, None))
    d_hidden = nodes.small("d_hidden", above, of_hidden, forward=at)
    d_out = nodes.small("d_out", d_hidden, cell.squashed, forward=at)
    d_tanh = nodes.small("d_tanh", d_hidden, cell.active[3], cell.squashed, forward=at)
    d_cell = nodes.small("d_cell", d_tanh, of_cell, forward=at)
    d_keep = nodes.small("d_keep", d_cell, None if before is None else before.cell, forward=at)
    d_in = nodes.small("d_in", d_cell, cell.active[2], forward=at)
    d_new = nodes.small("d_new", d_cell, cell.active[1], forward=at)
    d_before = nodes.small("d_before", d_cell, cell.active[0], forward=at)
    gates = [
        nodes.small("d_gate", each, cell.active[gate], forward=at)
        for gate, each in enumerate((d_keep, d_in, d_new, d_out))
    ]
    joined = nodes.small("d_joined", *gates, made=4 * STATE, forward=at)
    d_below = nodes.product("d_x", joined, weights[0], forward=at)
    d_fed = nodes.product("d_h", joined, weights[1], forward=at)
    of_w = nodes.product("d_W", joined, None if below is None else below.hidden, made=WEIGHT, forward=at)
    of_u = nodes.product("d_U", joined, None if before is None else before.hidden, made=WEIGHT, forward=at)
    of_b = nodes.small("d_b", joined, forward=at)
    known = sums.get(layer)
    found = [of_w, of_u, of_b]
    if known is not None:
        made = WEIGHT, WEIGHT, STATE
        found = [
            nodes.small("sum", old, new, made=size, forward=at)
            for old, new, size in zip(known, found, made, strict=True)
        ]
    sums[layer] = found
    later[layer] = d_fed, d_before
    return d_below


def _graph(nodes: _Nodes, tensors: int) -> PlacementGraph:
    """Return nodes of which the first ones are tensors."""
    count = len(nodes.names)
    sizes = np.array(nodes.bytes)
    return PlacementGraph(
        names=tuple(nodes.names),
        nanoseconds=np.array([nodes.nanoseconds]),
        maker=np.arange(count),
        sent_bytes=sizes,
        stored_bytes=sizes,
        readers=IntegerLists.of(nodes.readers),
        after=IntegerLists.of(nodes.after),
        leader=np.array(nodes.leader),
        lasting=np.arange(count) < tensors,
        scratch_bytes=np.zeros(count, np.int64),
    )
