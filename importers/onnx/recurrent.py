"""ONNX's recurrent nodes: one layer in one direction or both, unrolled into a few operations for each step.

Gates have a dimension of their own, so that an operation is split by hidden units in all of them at once. The
operations of all steps share their strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...dataflow.settings import TIE
from .compose import apply, joined, parsed, reshape
from .moves import transposed
from .node import Adapter, OnnxNode
from .operand import Constants, OnnxOperand, UnsupportedNodeError, constant

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
"""The number of gates: of an LSTM input, output, forget and cell, of a GRU update, reset and hidden."""

ACTIVATIONS = {
    "RNN": (["tanh"], ["relu"]),
    "LSTM": (["sigmoid", "tanh", "tanh"],),
    "GRU": (["sigmoid", "tanh"],),
}
"""The functions of a direction that have descriptions, the usual ones first."""

INPUTS = """
def gates_of_inputs(x, w, b, *, way):
    product = lambda t, n, g, h: Sum(lambda k: x[t, n, k] * w[way, g, h, k])
    return lambda t, n, g, h: product[t, n, g, h] + b[way, 0, g, h]
"""
STATES = """
def gates_of_states(s, r, b, *, way):
    product = lambda n, g, h: Sum(lambda k: s[n, k] * r[way, g, h, k])
    return lambda n, g, h: product[n, g, h] + b[way, 1, g, h]
"""
RNN = """
def next_state(x, p, *, step):
    return lambda n, h: {function}(x[step, n, 0, h] + p[n, 0, h])
"""
CELL = """
def next_cell(x, p, c, w, *, step, way):
    entry = lambda n, h: sigmoid(x[step, n, 0, h] + p[n, 0, h] + w[way, 0, h] * c[n, h])
    forget = lambda n, h: sigmoid(x[step, n, 2, h] + p[n, 2, h] + w[way, 2, h] * c[n, h])
    return lambda n, h: forget[n, h] * c[n, h] + entry[n, h] * tanh(x[step, n, 3, h] + p[n, 3, h])
"""
LSTM = """
def next_state(x, p, c, w, *, step, way):
    exit = lambda n, h: sigmoid(x[step, n, 1, h] + p[n, 1, h] + w[way, 1, h] * c[n, h])
    return lambda n, h: exit[n, h] * tanh(c[n, h])
"""
PLAIN = """
def next_cell(x, p, c, *, step):
    forget = lambda n, h: sigmoid(x[step, n, 2, h] + p[n, 2, h]) * c[n, h]
    entry = lambda n, h: sigmoid(x[step, n, 0, h] + p[n, 0, h]) * tanh(x[step, n, 3, h] + p[n, 3, h])
    return lambda n, h: forget[n, h] + entry[n, h]
"""
PLAIN_STATE = """
def next_state(x, p, c, *, step):
    return lambda n, h: sigmoid(x[step, n, 1, h] + p[n, 1, h]) * tanh(c[n, h])
"""
GRU = """
def next_state(x, p, s, *, step):
    update = lambda n, h: sigmoid(x[step, n, 0, h] + p[n, 0, h])
    reset = lambda n, h: sigmoid(x[step, n, 1, h] + p[n, 1, h])
    new = lambda n, h: tanh(x[step, n, 2, h] + reset[n, h] * p[n, 2, h])
    return lambda n, h: (1 - update[n, h]) * new[n, h] + update[n, h] * s[n, h]
"""
RESET_FIRST = """
def next_state(x, p, s, r, b, *, step, way):
    reset = lambda n, h: sigmoid(x[step, n, 1, h] + p[n, 1, h]) * s[n, h]
    product = lambda n, h: Sum(lambda k: reset[n, k] * r[way, 2, h, k])
    update = lambda n, h: sigmoid(x[step, n, 0, h] + p[n, 0, h])
    new = lambda n, h: tanh(x[step, n, 2, h] + product[n, h] + b[way, 1, 2, h])
    return lambda n, h: (1 - update[n, h]) * new[n, h] + update[n, h] * s[n, h]
"""


def recurrent(node: OnnxNode) -> Sequence[OnnxOperand]:
    node.only(input_forget=0, activation_alpha=[], activation_beta=[])
    if "clip" in node.attributes:
        raise UnsupportedNodeError(f"{node.kind} with clip")
    if node.has(4) and (node.value(4) != node[0].shape[1 if node.integer("layout", 0) else 0]).any():
        raise UnsupportedNodeError(f"{node.kind} with sequence lengths")
    batch_first = bool(node.integer("layout", 0))
    data = transposed(node[0], (1, 0, 2)) if batch_first else node[0]
    directions = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    layer = _Layer(node, data, batch_first)
    ways = [layer.run(way, back) for way, back in enumerate(directions[node.text("direction", "forward")])]
    every = [_stacked([states[step] for states, _ in ways]) for step in range(data.shape[0])]
    lasts = [_stacked([last[place] for _, last in ways]) for place in range(len(ways[0][1]))]
    axis = 1 if batch_first else 0
    if batch_first:
        lasts = [transposed(each, (1, 0, 2)) for each in lasts]
        every = [transposed(each, (1, 0, 2)) for each in every]
    steps = [_with_axis(each, axis) for each in every]
    return [joined(steps, axis), *lasts]


def _activations(node: OnnxNode, ways: int) -> list[str]:
    """Return the first function of each direction."""
    usual = ACTIVATIONS[node.kind]
    given = [
        bytes(each).decode("utf-8", "replace").lower() for each in node.attributes.get("activations", ())
    ]
    count = len(usual[0])
    parts = [given[way * count : (way + 1) * count] for way in range(ways)] if given else [usual[0]] * ways
    if len(given) not in (0, ways * count) or any(part not in usual for part in parts):
        raise UnsupportedNodeError(f"{node.kind} with activations {', '.join(given)}")
    return [part[0] for part in parts]


def _stacked(ways: Sequence[OnnxOperand]) -> OnnxOperand:
    """Return states `[directions, batch, hidden]`."""
    return joined([_with_axis(each, 0) for each in ways], 0)


def _with_axis(operand: OnnxOperand, axis: int) -> OnnxOperand:
    return reshape(operand, (*operand.shape[:axis], 1, *operand.shape[axis:]))


class _Layer:
    """The tensors that the directions of a layer read, with a dimension for gates."""

    def __init__(self, node: OnnxNode, data: OnnxOperand, batch_first: bool) -> None:
        ways, gates = node[1].shape[0], GATES[node.kind]
        hidden = node.integer("hidden_size", node[2].shape[-1])
        self.node, self.data, self.batch_first = node, data, batch_first
        self.weights = reshape(node[1], (ways, gates, hidden, data.shape[2]))
        self.recurrent = reshape(node[2], (ways, gates, hidden, hidden))
        bias = node[3] if node.has(3) else constant(np.zeros((ways, 2 * gates * hidden)))
        self.biases = reshape(bias, (ways, 2, gates, hidden))
        self.peepholes = reshape(node[7], (ways, 3, hidden)) if node.has(7) else None
        self.held = (data.shape[1], hidden)
        self.functions = _activations(node, ways)

    def run(self, way: int, back: bool) -> tuple[list[OnnxOperand], list[OnnxOperand]]:
        """Return the state after every step of the data, and what is left at the end."""
        inputs = self.tied(INPUTS, way, self.data, self.weights, self.biases, way=way)
        state = self.first(5, way)
        cell = self.first(6, way) if self.node.kind == "LSTM" else None
        length = self.data.shape[0]
        found: dict[int, OnnxOperand] = {}
        for step in reversed(range(length)) if back else range(length):
            products = self.tied(STATES, way, state, self.recurrent, self.biases, way=way)
            state, cell = self.step(way, step, inputs, products, state, cell)
            found[step] = state
        return [found[step] for step in range(length)], [state] if cell is None else [state, cell]

    def step(
        self,
        way: int,
        step: int,
        inputs: OnnxOperand,
        products: OnnxOperand,
        state: OnnxOperand,
        cell: OnnxOperand | None,
    ) -> tuple[OnnxOperand, OnnxOperand | None]:
        """Return the next state and cell."""
        at = (inputs, products)
        if self.node.kind == "RNN":
            return self.tied(RNN.format(function=self.functions[way]), way, *at, step=step), None
        if cell is not None and self.peepholes is not None:
            cell = self.tied(CELL, way, *at, cell, self.peepholes, step=step, way=way)
            return self.tied(LSTM, way, *at, cell, self.peepholes, step=step, way=way), cell
        if cell is not None:
            cell = self.tied(PLAIN, way, *at, cell, step=step)
            return self.tied(PLAIN_STATE, way, *at, cell, step=step), cell
        if self.node.integer("linear_before_reset", 0):
            return self.tied(GRU, way, *at, state, step=step), None
        return self.tied(RESET_FIRST, way, *at, state, self.recurrent, self.biases, step=step, way=way), None

    def first(self, position: int, way: int) -> OnnxOperand:
        """Return a state before the first step: zeros if the node has none."""
        if not self.node.has(position):
            return apply("_zeros", shape=self.held)
        given = self.node[position]
        given = transposed(given, (1, 0, 2)) if self.batch_first else given
        return reshape(apply("slice_axis", given, axis=0, begin=way, end=way + 1), self.held)

    def tied(self, text: str, direction: int, *operands: OnnxOperand, **attributes: int) -> OnnxOperand:
        """Apply a description, whose strategies are those of all steps of a direction."""
        operator = parsed(text)
        tie = f"{Constants.innermost.get().prefix}{direction}.{operator.name}"
        return apply(operator, *operands, **attributes, **{TIE: tie})


ADAPTERS: Mapping[str, Adapter] = dict.fromkeys(GATES, recurrent)
