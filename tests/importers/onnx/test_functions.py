"""Functions of a file, and operators that ONNX defines by others, are the nodes that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import tofu  # noqa: E402
from tofu.errors import GraphError  # noqa: E402

from .evaluate import evaluate  # noqa: E402
from .whole_models import Writer  # noqa: E402

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def _function(name: str, nodes: Sequence[Any], inputs: Sequence[str] = ("a", "b")) -> Any:
    return helper.make_function("own", name, list(inputs), ["y"], list(nodes), OPSETS, attributes=["slope"])


def _model(nodes: Sequence[Any], functions: Sequence[Any]) -> bytes:
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(list(nodes), "g", [data], [out])
    model = helper.make_model(graph, opset_imports=OPSETS, functions=list(functions))
    return bytes(model.SerializeToString())


def _leaky() -> Any:
    leaky = helper.make_node("LeakyRelu", ["a"], ["l"], name="leaky")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=1))
    return _function("Bent", [leaky, helper.make_node("Clip", ["l", "b"], ["y"], name="clip")])


def test_a_function_of_the_file_has_the_attributes_and_inputs_of_its_node() -> None:
    node = helper.make_node("Bent", ["x"], ["out"], name="bent", domain="own", slope=0.5)
    symbol, _ = tofu.from_onnx(_model([node], [_leaky()]))
    assert [each.name for each in symbol.nodes][:2] == ["x", "bent.leaky"]
    (found,) = evaluate(symbol, {"x": np.array([[-2.0, 0, 1]] * 2)})
    assert found[0].tolist() == [-1, 0, 1]


def test_functions_that_call_each_other_are_refused() -> None:
    first = _function("First", [helper.make_node("Second", ["a"], ["y"], domain="own")], ["a"])
    second = _function("Second", [helper.make_node("First", ["a"], ["y"], domain="own")], ["a"])
    node = helper.make_node("First", ["x"], ["out"], name="call", domain="own")
    with pytest.raises(GraphError, match=r"the function 'own\.First' calls itself"):
        tofu.from_onnx(_model([node], [first, second]))


def test_functions_that_double_are_refused() -> None:
    functions = [_function("F0", [helper.make_node("Relu", ["a"], ["y"])], ["a"])]
    for level in range(1, 30):
        calls = [helper.make_node(f"F{level - 1}", ["a"], ["m"], domain="own"),
                 helper.make_node(f"F{level - 1}", ["m"], ["y"], domain="own")]  # fmt: skip
        functions.append(_function(f"F{level}", calls, ["a"]))
    node = helper.make_node("F29", ["x"], ["out"], domain="own")
    with pytest.raises(GraphError, match="loops and functions make more than 65,536 nodes"):
        tofu.from_onnx(_model([node], functions))


def test_what_a_function_needs_and_nobody_knows_is_named() -> None:
    unknown = _function("Outer", [helper.make_node("Unheard", ["a"], ["y"], name="inner")], ["a"])
    node = helper.make_node("Outer", ["x"], ["out"], name="call", domain="own")
    with pytest.raises(GraphError, match=r"node 'call' \(own\.Outer\): these operators are not known"):
        tofu.from_onnx(_model([node], [unknown]))


def test_an_operator_that_onnx_spells_out_trains_on_workers_as_on_one() -> None:
    writer = Writer()
    scores = writer.node("MatMul", "data", writer.weight("w", 6, 5))
    loss = writer.node("SoftmaxCrossEntropyLoss", scores, "label", name="loss", reduction="mean")
    model = writer.model(loss, data=[4, 6], label=[4])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    graph = tofu.training_graph(tofu.sym.MakeLoss(symbol), {"data": (4, 6), "label": (4,)})
    data = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    after = []
    for workers in (1, 2):
        with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers))) as executor:
            for name, value in {"w": parameters["w"], "data": data, "label": np.arange(4.0)}.items():
                executor.write(name, value)
            executor.write("learning_rate", [1.0])
            executor.run()
            after.append(executor.read("w"))
    z = data @ parameters["w"]
    share = np.exp(z) / np.exp(z).sum(1, keepdims=True) - np.eye(4, 5)
    for found in after:
        np.testing.assert_allclose(found, parameters["w"] - data.T @ share / 16, rtol=1e-4, atol=1e-6)
