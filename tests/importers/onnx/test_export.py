"""Symbols written as ONNX files: computed by ONNX's reference, and read back, with the same outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import tofu  # noqa: E402
from tofu.errors import DataError, GraphError  # noqa: E402

from .evaluate import evaluate  # noqa: E402
from .whole_models import MODELS  # noqa: E402

SHAPES = {"data": (2, 3, 8, 8)}


def _symbols() -> Mapping[str, tofu.sym.Symbol]:
    """Return symbols that together have most operators that can be written, by name."""
    sym = tofu.sym
    data = sym.Variable("data")
    flat = sym.Flatten(data)
    hidden = sym.FullyConnected(flat, num_hidden=6, name="fc")
    rows = sym.Reshape(data, shape=(2, 3, 64))
    deep = sym.Deconvolution(data, kernel=(2, 2), stride=(2, 2), num_filter=4, no_bias=True, name="up")
    filtered = sym.Convolution(data, kernel=(3, 3), pad=(1, 1), num_filter=4, num_group=1, name="conv")
    normal = sym.BatchNorm(filtered, fix_gamma=False, eps=1e-3, name="bn")
    parts = sym.SliceChannel(data, num_outputs=3, axis=1, name="parts")
    return {
        "classes": sym.SoftmaxOutput(hidden, name="softmax"),
        "score": sym.LogisticRegressionOutput(sym.LeakyReLU(hidden, act_type="elu", slope=0.5), name="score"),
        "image": sym.Pooling(
            sym.Activation(normal, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="avg"
        ),
        "global": sym.Pooling(deep, global_pool=True, kernel=(1, 1), pool_type="max"),
        "rows": sym.LayerNorm(sym.FullyConnected(rows, num_hidden=5, flatten=False, name="wide"), name="ln"),
        "product": sym.batch_dot(rows, sym.SwapAxis(rows, dim1=1, dim2=2)),
        "transposed": sym.batch_dot(rows, rows, transpose_b=True),
        "numbers": 2 / (sym.exp(1 - data / 3) + 1) ** 2 - sym.sqrt(abs(data) + 0.5),
        "parts": sym.Concat(parts[2], sym.gelu(parts[0]), sym.tanh(parts[1]), dim=1),
        "slices": sym.slice(data, begin=(None, 1, 6, None), end=(None, None, 1, 7), step=(1, 1, -2, 3)),
        "one slice": sym.slice_axis(
            sym.Pad(data, mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 0, 3)), axis=3, begin=-4, end=None
        ),
        "sums": sym.broadcast_mul(
            sym.sum(data, axis=(2, 3), keepdims=True), sym.mean(data, axis=(1,), keepdims=True)
        ),
        "all": sym.max(sym.clip(data, a_min=-0.5, a_max=0.5) > 0.1),
        "embedded": sym.Embedding(sym.Flatten(data > 0.5), input_dim=2, output_dim=3, name="table"),
        "softmax": sym.log_softmax(sym.expand_dims(sym.transpose(data, axes=(0, 2, 3, 1)), axis=1), axis=-1),
        "stretched": sym.broadcast_to(sym.mean(data, axis=(0,), keepdims=True), shape=(2, 3, 8, 8)),
    }


def _values(symbol: tofu.sym.Symbol) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    arguments, _, states = symbol.infer_shape(**SHAPES)
    names = zip(symbol.list_arguments() + symbol.list_auxiliary_states(), arguments + states, strict=True)
    return {name: generator.uniform(0.1, 1, shape).astype(np.float32) for name, shape in names}


def _reference(path: Path, feeds: Mapping[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    fed = {each.name: feeds[each.name] for each in model.graph.input}
    found: list[Any] = ReferenceEvaluator(model).run(None, fed)
    return found


@pytest.mark.parametrize("name", _symbols())
def test_written_symbols_compute_the_same_and_are_read_back(name: str, tmp_path: Path) -> None:
    symbol, path = _symbols()[name], tmp_path / "m.onnx"
    values = _values(symbol)
    fed = {each: SHAPES[each] for each in symbol.list_arguments() if each in SHAPES}
    parameters = {each: value for each, value in values.items() if each not in fed}
    tofu.export_onnx(symbol, parameters, path, {**fed, **_labels(symbol)})
    wanted = evaluate(symbol, values)
    for found, expected in zip(_reference(path, values), wanted, strict=True):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
    again, kept = tofu.from_onnx(path)
    for found, expected in zip(evaluate(again, {**kept, "data": values["data"]}), wanted, strict=True):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


def _labels(symbol: tofu.sym.Symbol) -> dict[str, tuple[int, ...]]:
    arguments, _, _ = symbol.infer_shape(**SHAPES)
    shapes = dict(zip(symbol.list_arguments(), arguments, strict=True))
    return {name: shape for name, shape in shapes.items() if name.endswith("label")}


@pytest.mark.parametrize("name", ["mlp", "lenet", "resnet", "bert", "vit"])
def test_imported_models_are_written_again(name: str, tmp_path: Path) -> None:
    model, first, second = MODELS[name](), tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model, first)
    shapes = {
        v.name: tuple(d.dim_value or 4 for d in v.type.tensor_type.shape.dim) for v in model.graph.input
    }
    symbol, parameters = tofu.from_onnx(first, shapes)
    tofu.export_onnx(symbol, parameters, second, shapes)
    feeds = {
        each: np.random.default_rng(0).integers(0, 2, shape).astype(np.float32)
        for each, shape in shapes.items()
    }
    (found,), (expected,) = _reference(second, feeds), evaluate(symbol, {**parameters, **feeds})
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_all_that_cannot_be_written_is_listed(tmp_path: Path) -> None:
    data = tofu.sym.Variable("data")
    symbol = tofu.sym.sort(tofu.sym.topk(data, name="best"), name="order")
    with pytest.raises(GraphError) as caught:
        tofu.export_onnx(symbol, {}, tmp_path / "m.onnx", SHAPES)
    assert "  topk: 'best'\n  sort: 'order'\n" in str(caught.value)
    assert not (tmp_path / "m.onnx").exists()


def test_values_are_checked(tmp_path: Path) -> None:
    symbol = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=2, name="fc")
    with pytest.raises(DataError, match=r"'fc_weight' of shape \(2, 192\) has no value"):
        tofu.export_onnx(symbol, {}, tmp_path / "m.onnx", SHAPES)
    given = {"fc_weight": np.ones((2, 3)), "fc_bias": np.ones(2)}
    with pytest.raises(DataError, match=r"its value has \(2, 3\)"):
        tofu.export_onnx(symbol, given, tmp_path / "m.onnx", SHAPES)
