from __future__ import annotations

import numpy as np
import pytest

from tofu import GraphError, models
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import inference_graph
from tofu.models.transformer import TransformerArchitecture, attention
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

ARCHITECTURE = TransformerArchitecture(layers=1, width=6, heads=2, dropout=0)


def start(graph: Graph) -> dict[str, Array]:
    generator = np.random.default_rng(5)
    return {
        tensor.name: generator.standard_normal(tensor.shape)
        for tensor in graph.tensors
        if tensor.role in (Role.DATA, Role.PARAMETER) and tensor.alias is None
    }


def outputs(graph: Graph, values: dict[str, Array], workers: int = 1) -> Array:
    with Executor(lower(graph, partition(graph, workers))) as executor:
        for name, value in values.items():
            executor.write(name, value)
        executor.run()
        return executor.read(graph.tensors[graph.outputs[0]].name)


def by_hand(values: dict[str, Array], *, causal: bool) -> Array:
    """Multi-head attention, head by head."""

    def product(inputs: Array, role: str) -> Array:
        return inputs @ values[f"a_{role}_weight"].T + values[f"a_{role}_bias"]

    queries = product(values["data"], "query")
    keys, read = (product(values["memory"], role) for role in ("key", "value"))
    results = []
    for head in (slice(0, 3), slice(3, 6)):
        scores = queries[..., head] @ keys[..., head].swapaxes(1, 2) / np.sqrt(3)
        if causal:
            later = np.arange(keys.shape[1]) > np.arange(queries.shape[1])[:, None]
            scores[:, later] = -np.inf
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        results.append(weights @ read[..., head])
    return product(np.concatenate(results, axis=2), "joint")


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_what_its_definition_says(causal: bool, workers: int) -> None:
    with NameScope():
        data, memory = sym.Variable("data"), sym.Variable("memory")
        symbol = attention(data, memory, ARCHITECTURE, "a", causal=causal)
    shapes = {"data": (2, 4, 6), "memory": (2, 5, 6)}
    graph = inference_graph(symbol, shapes, dtype="float64")
    values = start(graph)
    expected = by_hand(values, causal=causal)
    np.testing.assert_allclose(outputs(graph, values, workers), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "options", "later"),
    [
        ("gpt-2-16", {}, False),
        ("transformer-decoder-1-16", {"memory": 3}, False),
        ("transformer-1-16", {}, False),
        ("transformer-encoder-1-16", {}, True),
    ],
)
def test_who_sees_later_tokens(name: str, options: dict[str, int], later: bool) -> None:
    """Only the encoder's predictions change where a later token does."""
    model = models.get(name, batch=1, steps=4, vocabulary=7, heads=2, **options)
    graph = model.inference_graph(dtype="float64")
    values = start(graph)
    for tokens in ("data", "source"):
        if tokens in values:
            values[tokens] = np.array([[1.0, 5.0, 2.0, 3.0]])
    before = outputs(graph, values)
    values["data"] = np.array([[1.0, 5.0, 2.0, 6.0]])
    after = outputs(graph, values)
    assert (before[3] != after[3]).any()
    assert (before[:3] != after[:3]).any() == later


def test_an_unlabelled_position_teaches_nothing() -> None:
    model = models.get("transformer-encoder-1-16", batch=2, steps=3, vocabulary=7, heads=2, dropout=0)
    graph = model.training_graph(dtype="float64")
    values = {**start(graph), "data": np.ones((2, 3)), "softmax_label": np.full((2, 3), -1.0)}
    values["learning_rate"] = np.ones(1)
    with Executor(lower(graph, partition(graph, 1))) as executor:
        for name, value in values.items():
            executor.write(name, value)
        executor.run()
        kept = executor.read("layer0_hidden_bias")
    np.testing.assert_array_equal(kept, values["layer0_hidden_bias"])


@pytest.mark.parametrize("heads", [0, 4, -1])
def test_heads_divide_the_width(heads: int) -> None:
    with pytest.raises(GraphError, match=f"cannot be divided among heads={heads}"):
        TransformerArchitecture(layers=1, width=6, heads=heads)
