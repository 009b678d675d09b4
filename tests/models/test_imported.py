"""ONNX files end in a loss that fits their output, and commands take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

onnx = pytest.importorskip("onnx")

from tofu.errors import ShapeError  # noqa: E402
from tofu.models import imported  # noqa: E402

Run = Callable[..., Result]


def _saved(folder: Path, kind: str, shape: list[Any], **attributes: Any) -> str:
    """Save a model that multiplies by a weight and applies one node."""
    weight = onnx.numpy_helper.from_array(np.full((shape[-1], 4), 0.5, np.float32), "weight")
    float32 = onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("MatMul", ["data", "weight"], ["product"], name="product"),
        onnx.helper.make_node(kind, ["product"], ["out"], name="last", **attributes),
    ]
    fed = [onnx.helper.make_tensor_value_info("data", float32, shape)]
    made = [onnx.helper.make_tensor_value_info("out", float32, None)]
    graph = onnx.helper.make_graph(nodes, "g", fed, made, [weight])
    path = folder / "m.onnx"
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path
    )
    return str(path)


@pytest.mark.parametrize(
    ("kind", "shape", "loss", "before", "label"),
    [
        ("Relu", ["N", 6], "SoftmaxOutput", "last", (8,)),
        ("Softmax", ["N", 6], "SoftmaxOutput", "product", (8,)),
        ("Relu", ["N", 5, 6], "SoftmaxOutput", "scores", (8, 5)),
        ("Sigmoid", ["N", 6], "LogisticRegressionOutput", "product", (8, 4)),
        ("Relu", ["N", 2, 5, 6], "LinearRegressionOutput", "last", (8, 2, 5, 4)),
    ],
)
def test_the_loss_follows_from_the_output(
    tmp_path: Path, kind: str, shape: list[Any], loss: str, before: str, label: tuple[int, ...]
) -> None:
    model = imported.load(_saved(tmp_path, kind, shape), 8)
    head = model.symbol.heads[0].node
    assert head.operator is not None
    assert (head.operator.name, head.inputs[0].node.name) == (loss, before)
    assert list(model.labels.values()) == [label]
    assert model.start.keys() == {"weight"}
    assert model.weight_count == 24
    assert model.training_graph().operations


def test_a_batch_that_the_file_fixes(tmp_path: Path) -> None:
    path = _saved(tmp_path, "Relu", [3, 6])
    assert imported.load(path).batch == 3
    assert imported.for_data(path, None, 64).batch == 3
    with pytest.raises(ShapeError, match="has a batch of 3"):
        imported.load(path, 8)


def test_commands_take_the_file(tmp_path: Path, tofu: Run) -> None:
    path = _saved(tmp_path, "Relu", ["N", 6])
    found = tofu("plan", path, "--batch", "8", "--workers", "4", "--machine", "dgx-h100", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["step_seconds"] > 0
    saved = str(tmp_path / "plan.json")
    assert tofu("plan", path, "--shape", "data=8,6", "--workers", "2", "--save", saved).exit_code == 0
    assert tofu("verify", saved).exit_code == 0
    found = tofu("plan", path)
    assert found.exit_code == 2
    assert "--shape data=8,6" in found.stderr


def test_training_begins_with_the_weights_of_the_file(tmp_path: Path, tofu: Run) -> None:
    path = _saved(tmp_path, "Relu", ["N", 6])
    samples = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, data=samples, label=samples[:, :4].argmax(1))
    found = tofu(
        "train",
        path,
        "--data",
        str(arrays),
        "--batch",
        "8",
        "--epochs",
        "1",
        "--workers",
        "2",
        "--lr",
        "1e-9",
        "--json",
    )
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout.splitlines()[-1])["final_loss"] == pytest.approx(np.log(4), rel=1e-5)
