"""ONNX's recurrent nodes: one layer, whose gates MXNet packs into one vector in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .compose import apply, outputs, reshape
from .moves import transposed
from .node import Adapter, OnnxNode
from .operand import Operand, UnsupportedNodeError, constant

GATES = {"RNN": (0,), "LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""By kind, where MXNet's gates stand among ONNX's: of an LSTM input, forget, memory, output for iofc."""

MODES = {"RNN": "rnn_tanh", "LSTM": "lstm", "GRU": "gru"}


def recurrent(node: OnnxNode) -> Sequence[Operand]:
    for name in ("activations", "activation_alpha", "activation_beta", "clip", "input_forget"):
        if name in node.attributes:
            raise UnsupportedNodeError(f"{node.kind} with {name}")
    if node.has(4):
        raise UnsupportedNodeError(f"{node.kind} with sequence lengths")
    if node.kind == "GRU" and not node.integer("linear_before_reset", 0):
        raise UnsupportedNodeError("GRU without linear_before_reset, which resets states before the product")
    if node.has(7):
        raise UnsupportedNodeError("LSTM with peepholes")
    direction = node.text("direction", "forward")
    batch_first = bool(node.integer("layout", 0))
    data = apply("SwapAxis", node[0], dim1=0, dim2=1) if batch_first else node[0]
    if direction == "reverse":
        every, *last = _run(node, apply("reverse", data, axis=0), both=False, batch_first=batch_first)
        return [apply("reverse", every, axis=1 if batch_first else 0), *last]
    return _run(node, data, direction == "bidirectional", batch_first)


def _run(node: OnnxNode, data: Operand, both: bool, batch_first: bool) -> Sequence[Operand]:
    hidden, order = node.integer("hidden_size", node[2].shape[-1]), GATES[node.kind]
    ways = 2 if both else 1
    length, batch, _ = data.shape
    zeros = constant(np.zeros((ways, batch, hidden)))
    states = [
        (transposed(node[k], (1, 0, 2)) if batch_first else node[k]) if node.has(k) else zeros
        for k in ((5, 6) if node.kind == "LSTM" else (5,))
    ]
    every, *last = outputs(
        "RNN",
        data,
        _parameters(node, ways, order, hidden),
        *states,
        state_size=hidden,
        num_layers=1,
        mode=MODES[node.kind],
        bidirectional=both,
        state_outputs=True,
    )
    steps = reshape(every, (length, batch, ways, hidden))
    if batch_first:
        return [transposed(steps, (1, 0, 2, 3)), *(transposed(state, (1, 0, 2)) for state in last)]
    return [transposed(steps, (0, 2, 1, 3)), *last]


def _parameters(node: OnnxNode, ways: int, order: Sequence[int], hidden: int) -> Operand:
    """Return all matrices, then all biases, in one vector, the gates in MXNet's order."""
    gates = len(order)
    parts = [_ordered(node[k], way, 0, order, hidden) for way in range(ways) for k in (1, 2)]
    if node.has(3):
        starts = (0, gates * hidden)
        parts += [_ordered(node[3], way, start, order, hidden) for way in range(ways) for start in starts]
    else:
        parts.append(constant(np.zeros(ways * 2 * gates * hidden)))
    return apply("Concat", *parts, dim=0)


def _ordered(tensor: Operand, way: int, start: int, order: Sequence[int], hidden: int) -> Operand:
    """Return the rows of the gates of one direction in another order, in one dimension."""
    own = apply("slice_axis", tensor, axis=0, begin=way, end=way + 1)
    rows = [
        apply("slice_axis", own, axis=1, begin=start + gate * hidden, end=start + (gate + 1) * hidden)
        for gate in order
    ]
    joined = apply("Concat", *rows, dim=1) if len(rows) > 1 else rows[0]
    return reshape(joined, (-1,))


ADAPTERS: Mapping[str, Adapter] = dict.fromkeys(GATES, recurrent)
