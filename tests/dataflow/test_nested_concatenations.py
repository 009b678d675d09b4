"""Concatenations that begin with the inputs of earlier ones read their results."""

from __future__ import annotations

from typing import Any

import numpy as np

import tofu
from tofu.dataflow.nested_concatenations import nested_concatenations


def _variables(*names: str) -> list[Any]:
    return [tofu.sym.Variable(name, shape=(2, 3)) for name in names]


def _inputs(graph: Any) -> dict[str, list[str]]:
    """Return the names of what every operation of a graph reads."""
    return {
        operation.name: [graph.tensors[index].name for index in operation.inputs]
        for operation in graph.operations
    }


def _graph(*symbols: Any) -> Any:
    return tofu.inference_graph(tofu.sym.Group(list(symbols)), {})


def test_the_longest_earlier_beginning_is_read() -> None:
    a, b, c, d = _variables("a", "b", "c", "d")
    two = tofu.sym.Concat(a, b, dim=1, name="two")
    three = tofu.sym.Concat(a, b, c, dim=1, name="three")
    four = tofu.sym.Concat(a, b, c, d, dim=1, name="four")
    graph = _graph(two, three, four)
    assert _inputs(graph) == {
        "two": ["a", "b"],
        "three": ["two_output", "c"],
        "four": ["three_output", "d"],
    }
    assert [graph.tensors[index].name for index in graph.outputs] == [
        "two_output",
        "three_output",
        "four_output",
    ]


def test_other_dimensions_orders_and_equal_inputs_stay() -> None:
    a, b, c = _variables("a", "b", "c")
    parts = {"columns": (1, a, b), "rows": (0, a, b, c), "swapped": (1, b, a, c), "again": (1, a, b)}
    symbols = [tofu.sym.Concat(*given, dim=dim, name=name) for name, (dim, *given) in parts.items()]
    assert _inputs(_graph(*symbols)) == {
        name: [each.name for each in given] for name, (_, *given) in parts.items()
    }


def test_a_symbol_keeps_what_was_written() -> None:
    a, b, c = _variables("a", "b", "c")
    symbol = tofu.sym.Concat(tofu.sym.Concat(a, b, name="two"), tofu.sym.Concat(a, b, c, name="three"))
    text = symbol.tojson()
    tofu.inference_graph(symbol, {})
    assert symbol.tojson() == text
    assert [len(node.inputs) for node in symbol.nodes if not node.is_variable] == [2, 3, 2]


def test_settings_stay_with_what_is_nested() -> None:
    a, b, c = _variables("a", "b", "c")
    two = tofu.sym.Concat(a, b, name="two")
    symbol = tofu.sym.Group([two, tofu.sym.Concat(a, b, c, name="three", attr={"__group__": "dense"})])
    three = list(nested_concatenations(symbol.nodes).values())[-1]
    assert (three.name, len(three.inputs), three.attributes["num_args"]) == ("three", 2, 2)
    assert three.text["__group__"] == "dense"


def test_a_dense_block_has_the_same_bits_as_one_that_is_written_as_a_chain() -> None:
    def block(nested: bool) -> Any:
        results, joined = _variables("data"), None
        for layer in range(4):
            joined = _joined(results, joined, nested, f"join{layer}")
            results.append(tofu.sym.FullyConnected(joined, num_hidden=3, name=f"layer{layer}"))
        return tofu.sym.MakeLoss(
            tofu.sym.square(_joined(results, joined, nested, "join"), name="square"), name="loss"
        )

    flat, chain = (tofu.training_graph(block(nested), {"data": (2, 3)}) for nested in (False, True))
    assert _inputs(flat) == _inputs(chain)
    for mine, other in zip(_trained(flat), _trained(chain), strict=True):
        np.testing.assert_array_equal(mine, other)


def _joined(results: list[Any], before: Any, nested: bool, name: str) -> Any:
    if len(results) == 1:
        return results[0]
    return tofu.sym.Concat(*((before, results[-1]) if nested else results), dim=1, name=name)


def _trained(graph: Any) -> list[Any]:
    generator = np.random.default_rng(0)
    with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers=2))) as executor:
        kept = [
            tensor
            for tensor in graph.tensors
            if tensor.name.startswith(("layer", "data")) and tensor.role.name in ("PARAMETER", "DATA")
        ]
        for tensor in kept:
            executor.write(tensor.name, generator.standard_normal(tensor.shape).astype("float32"))
        executor.write("learning_rate", [0.1])
        executor.run()
        return [executor.read(tensor.name) for tensor in kept]
