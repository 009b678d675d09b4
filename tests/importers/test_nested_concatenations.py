"""Concatenations that begin with the inputs of earlier ones read their results."""

from __future__ import annotations

from typing import Any

import numpy as np

import tofu
from tofu.importers.nested_concatenations import nested_concatenations


def _variables(*names: str) -> list[Any]:
    return [tofu.sym.Variable(name, shape=(2, 3)) for name in names]


def _inputs(symbol: Any) -> dict[str, list[str]]:
    return {
        node.name: [entry.node.name for entry in node.inputs] for node in symbol.nodes if not node.is_variable
    }


def test_the_longest_earlier_beginning_is_read() -> None:
    a, b, c, d = _variables("a", "b", "c", "d")
    two = tofu.sym.Concat(a, b, dim=1, name="two")
    three = tofu.sym.Concat(a, b, c, dim=1, name="three")
    four = tofu.sym.Concat(a, b, c, d, dim=1, name="four")
    made = nested_concatenations(tofu.sym.Group([two, three, four]))
    assert _inputs(made) == {"two": ["a", "b"], "three": ["two", "c"], "four": ["three", "d"]}
    assert made.list_outputs() == ["two_output", "three_output", "four_output"]


def test_other_dimensions_orders_and_equal_inputs_stay() -> None:
    a, b, c = _variables("a", "b", "c")
    parts = [
        tofu.sym.Concat(a, b, dim=1, name="columns"),
        tofu.sym.Concat(a, b, c, dim=0, name="rows"),
        tofu.sym.Concat(b, a, c, dim=1, name="swapped"),
        tofu.sym.Concat(a, b, dim=1, name="again"),
    ]
    symbol = tofu.sym.Group(parts)
    assert _inputs(nested_concatenations(symbol)) == _inputs(symbol)


def test_nested_concatenations_have_the_same_values_and_gradients() -> None:
    def block() -> Any:
        results = _variables("data")
        for layer in range(4):
            joined = tofu.sym.Concat(*results, dim=1) if layer else results[0]
            results.append(tofu.sym.FullyConnected(joined, num_hidden=3, name=f"layer{layer}"))
        return tofu.sym.MakeLoss(tofu.sym.sum(tofu.sym.square(tofu.sym.Concat(*results, dim=1))))

    def trained(symbol: Any) -> dict[str, Any]:
        graph = tofu.training_graph(symbol, {"data": (2, 3)})
        plan = tofu.partition(graph, workers=2)
        generator = np.random.default_rng(0)
        with tofu.Executor(tofu.lower(graph, plan)) as executor:
            for name in sorted(symbol.list_arguments()):
                shape = next(tensor.shape for tensor in graph.tensors if tensor.name == name)
                executor.write(name, generator.standard_normal(shape).astype("float32"))
            executor.write("learning_rate", [0.1])
            executor.run()
            return {name: executor.read(name) for name in symbol.list_arguments()}

    written = block()
    nested = nested_concatenations(written)
    assert max(len(inputs) for inputs in _inputs(nested).values()) < 5
    expected = trained(written)
    for name, value in trained(nested).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6)
