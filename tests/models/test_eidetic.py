"""Eidetic 3D LSTM against its formulas in NumPy and numeric differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tofu import models
from tofu.dataflow.training import inference_graph
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

LAYERS, STEPS, HIDDEN = 2, 3, 2


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def convolved(values: Mapping[str, Array], name: str, data: Array, pad: bool = True) -> Array:
    """A convolution over frames alone: rows and columns have a kernel of one element."""
    weight = values[f"{name}_weight"][..., 0, 0]
    extent = weight.shape[2]
    padded = np.pad(data, [(0, 0), (0, 0), (0, extent - 1 if pad else 0), (0, 0), (0, 0)])
    frames = padded.shape[2] - extent + 1
    moved = sum(
        np.einsum("oc,bcthw->bothw", weight[:, :, k], padded[:, :, k : k + frames]) for k in range(extent)
    )
    return np.asarray(moved) + values[f"{name}_bias"][:, None, None, None]


def normal(values: Mapping[str, Array], prefix: str, data: Array) -> Array:
    centred = data - data.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    gamma, beta = (values[f"{prefix}normal_{role}"][:, None, None, None] for role in ("gamma", "beta"))
    return np.asarray(scaled * gamma + beta)


def by_hand(values: Mapping[str, Array]) -> Array:
    """The cells of the publication, layer after layer."""
    data = values["data"]
    zeros = np.zeros((len(data), HIDDEN, 2, *data.shape[3:]))
    hidden, cell, memory = [zeros] * LAYERS, [zeros] * LAYERS, zeros
    past: list[list[Array]] = [[zeros] for _ in range(LAYERS)]
    frames = []
    for time in range(STEPS):
        body = data[:, :, time : time + 2]
        for layer in range(LAYERS):
            prefix = f"e3d_l{layer}_"
            x = np.split(convolved(values, f"{prefix}inputs", body), 7, axis=1)
            h = np.split(convolved(values, f"{prefix}hidden", hidden[layer]), 4, axis=1)
            m = np.split(convolved(values, f"{prefix}memory", memory), 4, axis=1)
            queries = sigmoid(x[0] + h[0]).reshape(len(data), HIDDEN, -1)
            keys = np.concatenate([each.reshape(len(data), HIDDEN, -1) for each in past[layer]], axis=2)
            weights = np.exp(np.einsum("bcq,bck->bqk", queries, keys))
            weights /= weights.sum(axis=2, keepdims=True)
            read = np.einsum("bqk,bck->bcq", weights, keys).reshape(zeros.shape)
            cell[layer] = normal(values, prefix, cell[layer] + read)
            cell[layer] = cell[layer] + sigmoid(x[1] + h[1]) * np.tanh(x[2] + h[2])
            past[layer].append(cell[layer])
            kept = sigmoid(x[5] + m[1] + 1) * np.tanh(m[3])
            memory = kept + sigmoid(x[4] + m[0]) * np.tanh(x[6] + m[2])
            shown = convolved(values, f"{prefix}cell_show", cell[layer])
            shown = shown + convolved(values, f"{prefix}memory_show", memory)
            joined = convolved(values, f"{prefix}joint", np.concatenate([cell[layer], memory], axis=1))
            hidden[layer] = np.tanh(joined) * sigmoid(np.tanh(x[3] + h[3] + shown))
            body = hidden[layer]
        frames.append(convolved(values, "predict", body, pad=False))
    return np.concatenate(frames, axis=2)


@pytest.mark.parametrize("workers", [1, 4])
def test_cells_are_what_their_formulas_say(workers: int) -> None:
    model = models.get(
        "e3d", batch=4, layers=LAYERS, hidden=HIDDEN, kernel=1, patch=1, steps=STEPS, image=(1, 2, 3)
    )
    graph = inference_graph(model.symbol, model.shapes, dtype="float64")
    generator = np.random.default_rng(3)
    shapes = {**model.parameters, "data": model.shapes["data"]}
    values = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    with Executor(lower(graph, partition(graph, workers))) as executor:
        for name, value in values.items():
            executor.write(name, value)
        executor.run()
        found = executor.read(graph.tensors[graph.outputs[0]].name)
    np.testing.assert_allclose(found, by_hand(values), rtol=1e-9, atol=1e-12)


def test_gradients(assert_gradients_are_numeric: Callable[..., None]) -> None:
    model = models.get("e3d", batch=2, layers=2, hidden=2, kernel=3, patch=1, steps=2, image=(1, 3, 3))
    generator = np.random.default_rng(4)
    data = {name: generator.standard_normal(shape) for name, shape in model.shapes.items()}
    numbers = data["label"][0].size
    assert_gradients_are_numeric(
        model, data, lambda output: ((output - data["label"]) ** 2).sum() / 2 / numbers
    )
