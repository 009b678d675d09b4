"""ONNX's recurrent nodes: one layer, whose gates MXNet packs into one vector in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .node import Adapter, Array, OnnxNode, UnsupportedNodeError, apply, outputs

GATES = {"RNN": (0,), "LSTM": (0, 2, 3, 1)}
"""By kind, where MXNet's gates stand among ONNX's: of an LSTM input, forget, memory, output for iofc.

A GRU of ONNX's cases resets states before a product, MXNet's the product: none is the other's counterpart.
"""

MODES = {"RNN": "rnn_tanh", "LSTM": "lstm"}


def recurrent(node: OnnxNode) -> Sequence[Array]:
    for name in ("activations", "activation_alpha", "activation_beta", "clip", "input_forget"):
        if name in node.attributes:
            raise UnsupportedNodeError(f"{node.kind} with {name}")
    if node.has(4):
        raise UnsupportedNodeError(f"{node.kind} with sequence lengths")
    if node.has(7):
        raise UnsupportedNodeError("LSTM with peepholes")
    direction = node.text("direction", "forward")
    batch_first = bool(node.integer("layout", 0))
    data = apply("SwapAxis", node[0], dim1=0, dim2=1) if batch_first else node[0]
    if direction == "reverse":
        every, *last = _run(node, apply("reverse", data, axis=0), both=False, batch_first=batch_first)
        return [apply("reverse", every, axis=1 if batch_first else 0), *last]
    return _run(node, data, direction == "bidirectional", batch_first)


def _run(node: OnnxNode, data: Array, both: bool, batch_first: bool) -> Sequence[Array]:
    hidden, order = node.integer("hidden_size", 0), GATES[node.kind]
    ways = 2 if both else 1
    rows = len(order) * hidden
    biases = node[3] if node.has(3) else np.zeros((ways, 2 * rows), data.dtype)
    parameters = [_packed(matrix[way], order) for way in range(ways) for matrix in (node[1], node[2])] + [
        _packed(biases[way].reshape(2, rows)[part], order) for way in range(ways) for part in (0, 1)
    ]
    zeros = np.zeros((ways, data.shape[1], hidden), data.dtype)
    states = [
        (node[k].swapaxes(0, 1) if batch_first else node[k]) if node.has(k) else zeros
        for k in ((5, 6) if node.kind == "LSTM" else (5,))
    ]
    every, *last = outputs(
        "RNN",
        data,
        np.concatenate(parameters),
        *states,
        state_size=hidden,
        num_layers=1,
        mode=MODES[node.kind],
        bidirectional=both,
        state_outputs=True,
    )
    steps = every.reshape(*every.shape[:2], ways, hidden).transpose(0, 2, 1, 3)
    if batch_first:
        return [steps.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)]
    return [steps, *last]


def _packed(rows: Array, order: Sequence[int]) -> Array:
    """Return the gates' rows in another order, in one dimension."""
    gates = np.split(rows, len(order))
    return np.concatenate([gates[place].reshape(-1) for place in order])


ADAPTERS: Mapping[str, Adapter] = dict.fromkeys(GATES, recurrent)
