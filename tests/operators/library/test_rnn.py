"""RNN against cells written in NumPy, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get

RNG = np.random.default_rng(20)
STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 4, 3
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def cell(mode: str, x: Array, s: Array, state: Array, memory: Array) -> tuple[Array, Array]:
    """New state and memory from the products of input and state with the weights, biases added."""
    if mode == "lstm":
        i, f, g, o = np.split(x + s, 4, axis=1)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(memory), memory
    if mode == "gru":
        (r, z, n), (sr, sz, sn) = np.split(x, 3, axis=1), np.split(s, 3, axis=1)
        kept = sigmoid(z + sz)
        return (1 - kept) * np.tanh(n + sigmoid(r + sr) * sn) + kept * state, memory
    return (np.maximum(x + s, 0) if mode == "rnn_relu" else np.tanh(x + s)), memory


def expected(
    mode: str, layers: int, directions: int, data: Array, parameters: Array, states: Array, memories: Array
) -> tuple[Array, Array, Array]:
    rows, rest = GATES[mode] * HIDDEN, parameters
    widths = [INPUTS if c < directions else directions * HIDDEN for c in range(layers * directions)]
    weights, biases = [], []
    for width in widths:
        for columns in (width, HIDDEN):
            weights.append(rest[: rows * columns].reshape(rows, columns))
            rest = rest[rows * columns :]
    for _ in range(2 * len(widths)):
        biases.append(rest[:rows])
        rest = rest[rows:]
    assert not rest.size
    value, last, kept = data, [], []
    for layer in range(layers):
        sides = []
        for direction in range(directions):
            c = layer * directions + direction
            state, memory, found = states[c], memories[c], {}
            for t in range(STEPS)[:: -1 if direction else 1]:
                x = value[t] @ weights[2 * c].T + biases[2 * c]
                s = state @ weights[2 * c + 1].T + biases[2 * c + 1]
                state, memory = cell(mode, x, s, state, memory)
                found[t] = state
            sides.append(np.stack([found[t] for t in range(STEPS)]))
            last.append(state)
            kept.append(memory)
        value = np.concatenate(sides, axis=2)
    return value, np.stack(last), np.stack(kept)


@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, True)])
def test_modes(mode: str, layers: int, bidirectional: bool) -> None:
    operator, directions = get("RNN"), 2 if bidirectional else 1
    settings = {
        "state_size": HIDDEN,
        "num_layers": layers,
        "bidirectional": bidirectional,
        "mode": mode,
        "state_outputs": True,
    }
    shapes = operator.infer(settings, {"data": (STEPS, BATCH, INPUTS)})
    names = operator.arguments(settings)
    tensors = {name: RNG.uniform(-1, 1, shapes[name]) for name in names}
    memories = tensors.get("state_cell", np.zeros(tensors["state"].shape))
    found = operator.bind({name: shapes[name] for name in names}, **settings).compute(tensors)
    wanted = expected(
        mode, layers, directions, tensors["data"], tensors["parameters"], tensors["state"], memories
    )
    assert len(found) == (3 if mode == "lstm" else 2)
    for result, reference in zip(found, wanted, strict=False):
        np.testing.assert_allclose(result, reference)


def test_gradients_reach_the_first_step(forward: Callable[..., dict], gradients: Callable[..., dict]) -> None:
    operator, settings = get("RNN"), {"state_size": 2, "num_layers": 2, "mode": "gru", "bidirectional": True}
    shapes = operator.infer(settings, {"data": (2, 1, 2)})
    tensors = {name: RNG.uniform(-1, 1, shapes[name]) for name in operator.arguments(settings)}
    head = RNG.normal(size=shapes["output_0"])
    found = gradients(operator, settings, tensors, (head,))
    for name, position in (("data", (0, 0, 1)), ("state", (3, 0, 1)), ("parameters", (5,))):
        step = np.zeros_like(tensors[name])
        step[position] = 1e-6
        ends = [
            (
                forward(operator, settings, {**tensors, name: tensors[name] + s * step})["output_0"] * head
            ).sum()
            for s in (1, -1)
        ]
        np.testing.assert_allclose(found[name][position], (ends[0] - ends[1]) / 2e-6, rtol=1e-5)


def test_every_step_splits_like_a_matrix_product() -> None:
    example = get("RNN").example
    assert example is not None
    stages = {stage.produces[0]: stage for stage in get("RNN").stages(example.attributes, example.shapes)}
    bound = stages["s0_1"].bind({"h0_0": (8, 4), "state_weight0": (16, 4)})
    kinds = {strategy.variable: strategy.kind for strategy in bound.strategies}
    assert kinds == {"n": "concat", "g": "concat", "k": "reduce"}


def test_what_does_not_fit_is_said() -> None:
    settings = {"state_size": 2, "num_layers": 1, "mode": "rnn_tanh"}
    shapes = {"data": (2, 1, 2), "parameters": (5,), "state": (1, 1, 2)}
    with pytest.raises(ShapeError, match="dimension 0 of parameters is 5"):
        get("RNN").infer(settings, shapes)
    with pytest.raises(ShapeError, match="these cells have 12 numbers"):
        get("RNN").stages(settings, shapes)
    with pytest.raises(OperatorError, match="p is not supported"):
        get("RNN").stages({**settings, "p": 0.5}, shapes)
