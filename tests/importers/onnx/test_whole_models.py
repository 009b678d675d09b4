"""Ten whole models: imported, computed as ONNX's reference does, and trained over eight workers as on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import tofu  # noqa: E402
from tofu.models import imported  # noqa: E402

from .whole_models import MODELS  # noqa: E402

BATCH = 8
LIMIT = 2e-5
"""The largest difference to the reference, next to the largest output."""


def _feeds(model: Any) -> dict[str, Any]:
    """Return random inputs of a batch; whole numbers are below two."""
    generator = np.random.default_rng(1)
    found = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [each.dim_value or BATCH for each in tensor.shape.dim]
        whole = tensor.elem_type == onnx.TensorProto.INT64
        found[value.name] = (
            generator.integers(0, 2, shape) if whole else generator.standard_normal(shape).astype(np.float32)
        )
    return found


def _run(graph: Any, workers: int, values: dict[str, Any], read: list[str]) -> dict[str, Any]:
    plan = tofu.partition(graph, workers, memory="unlimited")
    plan.verify(graph)
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        for name, value in values.items():
            if executor.has(name):
                executor.write(name, value)
        executor.run()
        return {name: executor.read(name) for name in read}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    model = MODELS[name]()
    feeds = _feeds(model)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    symbol, parameters = tofu.from_onnx(path, {key: value.shape for key, value in feeds.items()})
    graph = tofu.inference_graph(symbol, {key: value.shape for key, value in feeds.items()})
    (output,) = symbol.list_outputs()
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    for workers in (1, 8):
        found = _run(graph, workers, {**parameters, **feeds}, [output])[output]
        assert found.shape == wanted.shape
        assert abs(found - wanted).max() <= LIMIT * max(1.0, abs(wanted).max())


@pytest.mark.parametrize("name", MODELS)
def test_a_step_over_eight_workers_is_that_of_one(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS[name](), path)
    model = imported.load(str(path), BATCH)
    graph = model.training_graph("sgd")
    feeds = _feeds(MODELS[name]())
    ((label, shape),) = model.labels.items()
    classes = np.arange(int(np.prod(shape))).reshape(shape) % 2
    values = {
        **model.start,
        **feeds,
        label: classes.astype(np.float32),
        "learning_rate": np.full(1, 0.1, "f"),
    }
    trained = [t.name for t in graph.tensors if t.name in model.start and t.name in model.parameters]
    one, eight = (_run(graph, workers, values, trained) for workers in (1, 8))
    for each in trained:
        assert abs(one[each] - eight[each]).max() <= LIMIT * max(1.0, abs(one[each]).max()), each
    moved = [each for each in trained if (one[each] != model.start[each]).any()]
    fixed = {node.name for node in model.symbol.nodes if node.text.get("__lr_mult__") == "0"}
    assert moved
    assert not fixed & set(moved)
