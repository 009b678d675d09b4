"""Names, weights, constants, versions and unknown operators of a file in the symbol that is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import tofu  # noqa: E402
from tofu.errors import GraphError, OperatorError  # noqa: E402

from .evaluate import evaluate  # noqa: E402
from .whole_models import MODELS, Writer  # noqa: E402


def _fixed(symbol: Any) -> set[str]:
    return {node.name for node in symbol.nodes if node.text.get("__lr_mult__") == "0"}


def test_names_are_those_of_the_file() -> None:
    symbol, parameters = tofu.from_onnx(MODELS["resnet"]().SerializeToString(), {"data": (2, 8, 8, 8)})
    assert {"/conv1/Conv", "/bn1/BatchNormalization", "/fc/Add"} <= {node.name for node in symbol.nodes}
    assert symbol.list_outputs() == ["/fc/Add_output"]
    assert symbol.list_auxiliary_states() == [
        "bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var"
    ]  # fmt: skip
    assert parameters["conv1.weight"].shape == (16, 8, 3, 3)


def test_a_weight_that_two_nodes_read_is_one_parameter() -> None:
    symbol, parameters = tofu.from_onnx(MODELS["gpt"]().SerializeToString(), {"ids": (2, 8)})
    readers = [node for node in symbol.nodes for entry in node.inputs if entry.node.name == "wte.weight"]
    assert len(readers) == 2
    assert len([name for name in parameters if name.startswith("wte")]) == 1


def test_shape_arithmetic_leaves_no_operations() -> None:
    symbol, parameters = tofu.from_onnx(MODELS["vit"]().SerializeToString(), {"data": (2, 3, 8, 8)})
    kinds = {node.operator.name for node in symbol.nodes if node.operator is not None}
    assert not kinds & {"shape", "take", "_arange"}
    assert not _fixed(symbol)
    assert all(value.dtype == np.float32 for value in parameters.values())


def test_whole_numbers_and_numbers_without_dimensions_are_constants() -> None:
    writer = Writer()
    rows = writer.node("Gather", writer.weight("table", 5, 3), writer.integers("rows", 4, 0), axis=0)
    scaled = writer.node("Mul", rows, writer.value("scale", np.array(0.5, np.float32)))
    model = writer.model(writer.node("Add", scaled, "data"), data=[2, 3])
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    assert parameters.keys() == {"table", "rows"}
    assert _fixed(symbol) == {"rows"}
    graph = tofu.training_graph(tofu.sym.MakeLoss(symbol), {"data": (2, 3)})
    updated = {tensor.name for tensor in graph.tensors if tensor.name.startswith("updated(")}
    assert "updated(table)" in updated
    assert "updated(rows)" not in updated


def test_nodes_of_one_name_get_numbers() -> None:
    writer = Writer()
    first = writer.node("Relu", "data", name="act")
    writer.nodes[0].output[0] = "first"
    writer.nodes.append(onnx.helper.make_node("Exp", ["first"], ["second"], name="act"))
    assert first == "act:0"
    symbol, _ = tofu.from_onnx(writer.model("second", data=[2]).SerializeToString())
    assert [node.name for node in symbol.nodes] == ["data", "act", "act:2"]


def test_concatenations_read_those_that_they_begin_with() -> None:
    writer = Writer()
    pair = writer.node("Concat", "data", "other", axis=1, name="pair")
    three = writer.node("Concat", "data", "other", writer.node("Relu", pair), axis=1, name="three")
    model = writer.model(three, data=[2, 3], other=[2, 3]).SerializeToString()
    symbol, _ = tofu.from_onnx(model)
    graph = tofu.inference_graph(symbol, {"data": (2, 3), "other": (2, 3)})
    (last,) = [operation for operation in graph.operations if operation.name == "three"]
    assert graph.tensors[last.inputs[0]].name == "pair_output"
    assert len(last.inputs) == 2


def test_nodes_may_stand_in_any_order() -> None:
    model = MODELS["mlp"]()
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    again, _ = tofu.from_onnx(model.SerializeToString(), {"data": (2, 16)})
    symbol, _ = tofu.from_onnx(MODELS["mlp"]().SerializeToString(), {"data": (2, 16)})
    assert again.tojson() == symbol.tojson()


def test_a_symbol_is_saved_and_loaded() -> None:
    symbol, parameters = tofu.from_onnx(MODELS["vit"]().SerializeToString(), {"data": (2, 3, 8, 8)})
    values = {**parameters, "data": np.ones((2, 3, 8, 8), np.float32)}
    (found,), (expected,) = evaluate(tofu.sym.load_json(symbol.tojson()), values), evaluate(symbol, values)
    assert (found == expected).all()


def test_softmax_of_old_versions_is_over_all_dimensions_from_one_on() -> None:
    writer = Writer()
    model = writer.model(writer.node("Softmax", "data", axis=1), data=[2, 3, 4])
    model.opset_import[0].version = 11
    symbol, _ = tofu.from_onnx(model.SerializeToString())
    (found,) = evaluate(symbol, {"data": np.random.default_rng(0).standard_normal((2, 3, 4))})
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1)


def test_users_describe_what_is_not_known() -> None:
    writer = Writer()
    model = writer.model(writer.node("Bump", "data", domain="own", width=2.0), data=[3])
    with pytest.raises(GraphError, match=r"own\.Bump: 'Bump_0'"):
        tofu.from_onnx(model.SerializeToString())
    bump = tofu.parse("def bump(x, *, width):\n    return lambda *i: exp(-(x[*i] / width) ** 2)")
    symbol, _ = tofu.from_onnx(model.SerializeToString(), operators={"own.Bump": bump})
    (found,) = evaluate(symbol, {"data": np.array([0.0, 1.0, 2.0])})
    np.testing.assert_allclose(found, np.exp([-0.0, -0.25, -1.0]))


def test_what_a_node_asks_for_is_named() -> None:
    writer = Writer()
    data = writer.node(
        "MaxUnpool",
        "data",
        writer.value("places", np.zeros((1, 1, 2, 2), np.int64)),
        writer.integers("shape", 1, 1, 3, 3),
        kernel_shape=[2, 2],
        strides=[2, 2],
        name="back",
    )
    with pytest.raises(OperatorError, match=r"node 'back' \(MaxUnpool\): MaxUnpool of .* to \(3, 3\)"):
        tofu.from_onnx(writer.model(data, data=[1, 1, 2, 2]).SerializeToString())


def test_shapes_do_not_depend_on_data() -> None:
    writer = Writer()
    model = writer.model(writer.node("Reshape", "data", "ids"), data=[2, 3], ids=[1])
    with pytest.raises(
        OperatorError, match="the value of input 'ids' must be known when the model is imported"
    ):
        tofu.from_onnx(model.SerializeToString())


def test_a_named_dimension_has_one_extent() -> None:
    model = MODELS["recommender"]().SerializeToString()
    symbol, _ = tofu.from_onnx(model, {"data": (8, 4)})
    assert symbol.infer_shape()[1] == [(8, 1)]
    with pytest.raises(tofu.ShapeError, match="dimension 0 of 'data' is 3"):
        tofu.from_onnx(model, {"ids_user": (3,), "data": (8, 4)})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(GraphError, match="cannot be read"):
            tofu.from_onnx(path)


def test_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(GraphError, match=r"pip install 'tofu\[onnx\]'"):
        tofu.from_onnx(b"")
