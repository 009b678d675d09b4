"""Shared values, settings that say the default, and unusual numbers, as exporters write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import tofu  # noqa: E402
from tests.importers.torch.agreement import by_tofu  # noqa: E402
from tofu.errors import GraphError, OperatorError  # noqa: E402

from .evaluate import Array, evaluate  # noqa: E402
from .whole_models import OPSET, Writer  # noqa: E402


def _computed(writer: Writer, outputs: str, version: int = OPSET, **inputs: Any) -> Array:
    """Return the output of a graph for arrays, in a version of ONNX's operators."""
    arrays = {name: np.asarray(value, np.float32) for name, value in inputs.items()}
    model = writer.model(outputs, **{name: list(array.shape) for name, array in arrays.items()})
    model.opset_import[0].version = version
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    (found,) = evaluate(symbol, {**parameters, **arrays})
    return found


def _reference(model: Any, **inputs: Array) -> Array:
    from onnx.reference import ReferenceEvaluator

    (found,) = ReferenceEvaluator(model).run(None, inputs)
    return np.asarray(found)


def test_a_statistic_that_is_also_a_weight_has_a_variable_of_its_own() -> None:
    writer = Writer()
    zeros, ones = writer.value("zeros", np.zeros(3, "f")), writer.value("ones", np.ones(3, "f"))
    sums = writer.node("Add", writer.node("Conv", "data", writer.weight("w", 3, 3, 1, 1), zeros), "data")
    first = writer.node("BatchNormalization", sums, ones, zeros, zeros, ones)
    moved = writer.node(
        "Mul", writer.node("Add", first, writer.weight("shift", 1)), writer.weight("factor", 1)
    )
    second = writer.node("BatchNormalization", moved, writer.weight("scale", 3), zeros, zeros, ones)
    model = writer.model(second, data=[2, 3, 4, 4])
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    states = symbol.list_auxiliary_states()
    assert len(set(states)) == 4
    assert not set(states) & set(symbol.list_arguments())
    data = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype("f")
    (found,) = evaluate(symbol, {**parameters, "data": data})
    np.testing.assert_allclose(found, _reference(model, data=data), rtol=1e-5, atol=1e-6)
    graph = tofu.training_graph(tofu.sym.MakeLoss(symbol), {"data": data.shape})
    plan = tofu.partition(graph, 2)
    with tofu.Executor(tofu.lower(graph, plan)) as executor:
        for name, value in {**parameters, "data": data, "learning_rate": np.zeros(1, "f")}.items():
            if executor.has(name):
                executor.write(name, value)
        executor.run()
        after = {name: executor.read(name) for name in states}
    assert {name for name in states if np.allclose(after[name], parameters[name])} == set()


def test_two_nodes_of_the_same_parameters_update_the_same_statistics() -> None:
    writer = Writer()
    tensors = [writer.weight(name, 3) for name in ("scale", "offset", "mean")] + [
        writer.value("var", np.ones(3, "f"))
    ]
    first = writer.node("BatchNormalization", "data", *tensors)
    second = writer.node("BatchNormalization", first, *tensors)
    symbol, _ = tofu.from_onnx(writer.model(second, data=[2, 3, 4, 4]).SerializeToString())
    assert symbol.list_auxiliary_states() == ["mean", "var"]


def test_statistics_may_be_computed_or_fed() -> None:
    writer = Writer()
    mean = writer.node("ReduceMean", "data", axes=[0], keepdims=0)
    affine = writer.weight("scale", 3), writer.weight("offset", 3)
    normal = writer.node("BatchNormalization", "data", *affine, mean, "spread")
    model = writer.model(normal, data=[4, 3], spread=[3])
    data, spread = np.arange(12, dtype="f").reshape(4, 3), np.array([1, 2, 3], "f")
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    assert not symbol.list_auxiliary_states()
    (found,) = evaluate(symbol, {**parameters, "data": data, "spread": spread})
    np.testing.assert_allclose(found, _reference(model, data=data, spread=spread), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "gates", "settings"),
    [
        ("LSTM", 4, {"input_forget": 0}),
        ("LSTM", 4, {"activations": ["Sigmoid", "Tanh", "Tanh"]}),
        ("GRU", 3, {"activations": ["Sigmoid", "Tanh"]}),
        ("RNN", 1, {"activations": ["Tanh"]}),
    ],
)
def test_settings_may_say_the_default(kind: str, gates: int, settings: dict[str, Any]) -> None:
    results = []
    for given in (settings, {}):
        writer = Writer()
        weights = writer.weight("w", 1, gates * 5, 4), writer.weight("r", 1, gates * 5, 5)
        states = writer.node(kind, "data", *weights, hidden_size=5, **given)
        results.append(_computed(writer, states, data=np.ones((3, 2, 4))))
    assert (results[0] == results[1]).all()


def test_a_recurrence_of_rectified_units() -> None:
    writer = Writer()
    weights = writer.weight("w", 2, 5, 4), writer.weight("r", 2, 5, 5)
    settings: dict[str, Any] = {"activations": ["Relu", "Tanh"], "direction": "bidirectional"}
    data = np.random.default_rng(0).standard_normal((3, 2, 4)).astype("f")
    found = _computed(writer, writer.node("RNN", "data", *weights, hidden_size=5, **settings), data=data)
    w, r = (onnx.numpy_helper.to_array(each) for each in writer.kept)
    functions: list[Any] = [lambda x: np.maximum(x, 0), np.tanh]
    for way, function in enumerate(functions):
        state = np.zeros((2, 5), "f")
        for step in range(3) if way == 0 else reversed(range(3)):
            state = function(data[step] @ w[way].T + state @ r[way].T)
            np.testing.assert_allclose(found[step, way], state, rtol=1e-5, atol=1e-6)


def test_other_functions_of_a_recurrence_are_named() -> None:
    writer = Writer()
    weights = writer.weight("w", 1, 5, 4), writer.weight("r", 1, 5, 5)
    states = writer.node("RNN", "data", *weights, hidden_size=5, activations=["Softsign"])
    with pytest.raises(OperatorError, match="RNN with activations softsign"):
        _computed(writer, states, data=np.ones((3, 2, 4)))


def test_negative_pads_cut() -> None:
    data = np.arange(12.0).reshape(3, 4)
    writer = Writer()
    padded = writer.node("Pad", "data", writer.integers("pads", 1, -1, -1, 2))
    wanted = np.pad(data[:-1, 1:], ((1, 0), (0, 2)))
    np.testing.assert_array_equal(_computed(writer, padded, data=data), wanted)


def test_the_logarithm_of_a_sum_of_large_exponentials() -> None:
    writer = Writer()
    data = np.array([[1000.0, 1001.0], [-1000.0, -1001.0], [-np.inf, -np.inf]])
    found = _computed(writer, writer.node("ReduceLogSumExp", "data", axes=[1]), data=data)
    more = np.log1p(np.exp(-1))
    np.testing.assert_allclose(found[:, 0], [1001 + more, -1000 + more, -np.inf], rtol=1e-6)


def test_a_place_that_is_written_twice_has_the_mean() -> None:
    writer = Writer()
    places, updates = (
        writer.value("at", np.array([[1], [1], [2]])),
        writer.value("to", np.array([4, 6, 9], "f")),
    )
    written = writer.node("ScatterND", "data", places, updates)
    np.testing.assert_array_equal(_computed(writer, written, data=np.zeros(4)), [0, 5, 9, 0])


def test_nothing_may_be_concatenated() -> None:
    writer = Writer()
    nothing = writer.node("Expand", writer.weight("token", 1, 1, 4), writer.integers("shape", 2, 0, 4))
    data = np.ones((2, 3, 4))
    np.testing.assert_array_equal(
        _computed(writer, writer.node("Concat", nothing, "data", axis=1), data=data), data
    )


def test_a_scale_need_not_be_a_simple_fraction() -> None:
    writer = Writer()
    scales = writer.value("scales", np.array([1, np.pi / 2], "f"))
    data = np.random.default_rng(0).standard_normal((2, 7)).astype("f")
    resized = writer.node("Resize", "data", "", scales, mode="linear")
    model = writer.model(resized, data=[2, 7])
    np.testing.assert_allclose(_computed(writer, resized, data=data), _reference(model, data=data), atol=1e-5)


@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize(
    ("mode", "scale", "expected"), [("linear", 2.0, [0, 0.5, 1, 1]), ("nearest", 1.5, [0, 0, 1])]
)
def test_upsampling_begins_at_the_first_element(
    version: int, mode: str, scale: float, expected: list[float]
) -> None:
    writer, scales = Writer(), [1.0, 1.0, 1.0, scale]
    if version == 7:
        made = writer.node("Upsample", "data", mode=mode, scales=scales)
    else:
        made = writer.node("Upsample", "data", writer.value("scales", np.array(scales, "f")), mode=mode)
    data = np.tile(np.array([0.0, 1.0], "f"), (2, 3, 4, 1))
    found = _computed(writer, made, version, data=data)
    np.testing.assert_allclose(found, np.tile(np.array(expected, "f"), (2, 3, 4, 1)), atol=1e-6)


def test_weights_of_a_resize_have_a_limit() -> None:
    writer = Writer()
    sizes = writer.integers("sizes", 1, 1 << 26)
    resized = writer.node("Resize", "data", "", "", sizes, mode="cubic")
    with pytest.raises(GraphError, match="weights; 67,108,864 is the most"):
        _computed(writer, resized, data=np.ones((1, 7)))


@pytest.mark.parametrize("grid", [(1, 3, 3, 3), (1, 3, 3, 3, 2), (2, 3, 3, 2)])
def test_a_grid_fits_its_image(grid: tuple[int, ...]) -> None:
    writer = Writer()
    sampled = writer.node("GridSample", "data", "grid")
    with pytest.raises(OperatorError, match="GridSample of "):
        _computed(writer, sampled, data=np.ones((1, 2, 4, 4)), grid=np.zeros(grid))


SIX = [[[1.0, 2, 3, 4, 5, 6]]]
INFINITE = [-np.inf, -2, 1, 2, np.inf]
SETTINGS: dict[str, tuple[str, dict[str, Any], Any, Any]] = {
    "greatest up to the end": ("MaxPool", {"strides": [3]}, SIX, [[[3, 6]]]),
    "means up to the end": ("AveragePool", {"strides": [3]}, SIX, [[[2, 5]]]),
    "means with padding": ("AveragePool", {"strides": [3], "count_include_pad": 1}, SIX, [[[2, 5]]]),
    "norms everywhere": ("GlobalLpPool", {"p": 3}, [[[3, -4, 5], [0, -2, 0]]], [[[6], [2]]]),
    "norms up to the end": ("LpPool", {"strides": [3], "p": 1}, SIX, [[[6, 15]]]),
    "an even number of channels": (
        "LRN",
        {"size": 2, "alpha": 2.0, "beta": 1.0},
        [[[1.0], [2], [3]]],
        [[[1 / 6], [2 / 14], [3 / 10]]],
    ),
    "no infinity": ("IsInf", {"detect_negative": 0, "detect_positive": 0}, INFINITE, [0, 0, 0, 0, 0]),
    "what is not above a threshold": ("ThresholdedRelu", {}, INFINITE, [0, 0, 0, 2, np.inf]),
    "shrunk infinities": ("Shrink", {"bias": 0.5, "lambd": 1.0}, INFINITE, [-np.inf, -1.5, 0, 1.5, np.inf]),
}
"""By what they test: a node, its settings, its input and its output."""


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_and_numbers_that_are_unusual(name: str) -> None:
    kind, settings, data, expected = SETTINGS[name]
    if kind.endswith("Pool") and kind != "GlobalLpPool":
        settings = {"kernel_shape": [3], "pads": [0, 1], "ceil_mode": 1, **settings}
    writer, array = Writer(), np.array(data, np.float32)
    model = writer.model(writer.node(kind, "data", **settings), data=array.shape)
    model.opset_import[0].version = 18
    symbol, _ = tofu.from_onnx(model.SerializeToString())
    (found,) = evaluate(symbol, {"data": array})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"output_shape": [4], "strides": [2]}, [10, 102, 20, 200]),
        ({"output_shape": [4], "strides": [2], "auto_pad": "SAME_LOWER"}, [10, 102, 20, 200]),
        ({"output_shape": [4], "strides": [2], "auto_pad": "SAME_UPPER"}, [1, 10, 102, 20]),
        ({"output_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}, [10, 102, 20]),
        ({"output_padding": [1], "dilations": [2]}, [1, 2, 10, 20, 100, 200, 0]),
    ],
)
def test_ends_of_a_transposed_convolution(settings: dict[str, Any], expected: list[float]) -> None:
    writer = Writer()
    kernel = writer.value("kernel", np.array([[[1, 10, 100]]], np.float32))
    made = writer.node("ConvTranspose", "data", kernel, **settings)
    np.testing.assert_array_equal(_computed(writer, made, data=[[[1, 2]]]), [[expected]])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"output_shape": [4]}, [1, 10, 102, 20]),
        ({"output_shape": [4], "auto_pad": "SAME_UPPER"}, [10, 102, 20, 200]),
        ({"auto_pad": "SAME_UPPER"}, [1, 10, 102, 20]),
    ],
)
def test_ends_of_a_transposed_convolution_of_old_versions(
    settings: dict[str, Any], expected: list[float]
) -> None:
    writer = Writer()
    kernel = writer.value("kernel", np.array([[[1, 10, 100]]], np.float32))
    made = writer.node("ConvTranspose", "data", kernel, strides=[2], **settings)
    np.testing.assert_array_equal(_computed(writer, made, version=10, data=[[[1, 2]]]), [[expected]])


def test_bounds_may_be_computed() -> None:
    writer = Writer()
    most = writer.node("ReduceMean", "data", keepdims=0)
    made = writer.node("Clip", writer.node("Clip", "data", "least"), "", most)
    found = _computed(writer, made, data=[-3, 0, 1, 6], least=[-1])
    np.testing.assert_array_equal(found, [-1, 0, 1, 1])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("ReduceMean", 3), ("ReduceL2", 7), ("ReduceLogSum", 2), ("ReduceLogSumExp", 6)],
)
def test_reductions_of_whole_numbers_are_whole(kind: str, expected: int) -> None:
    writer = Writer()
    whole = writer.node("Cast", "data", to=onnx.TensorProto.INT64)
    made = writer.node(kind, whole, keepdims=0)
    np.testing.assert_array_equal(_computed(writer, made, data=[2, 4, 6.9, 1]), expected)


def test_powers_of_whole_numbers_are_whole() -> None:
    writer = Writer()
    whole = writer.node("Cast", "data", to=onnx.TensorProto.INT64)
    made = writer.node("Pow", whole, writer.value("exponents", np.array([0.5, 2, -1], np.float32)))
    np.testing.assert_array_equal(_computed(writer, made, data=[7, -3, 2]), [2, 9, 0])


def test_groups_of_old_versions_have_scales() -> None:
    writer = Writer()
    tensors = [writer.value(name, np.array([2, 10], np.float32)) for name in ("scale", "offset")]
    made = writer.node("GroupNormalization", "data", *tensors, num_groups=2, epsilon=0.0)
    found = _computed(writer, made, version=18, data=[[[1], [3], [5], [9]]])
    np.testing.assert_allclose(found, [[[0], [4], [0], [20]]], rtol=1e-6)


def test_a_bias_of_elements_that_no_input_reaches_is_refused() -> None:
    writer = Writer()
    tensors = [writer.weight("kernel", 1, 1, 2), writer.weight("bias", 1)]
    made = writer.node("ConvTranspose", "data", *tensors, dilations=[2], output_padding=[1])
    with pytest.raises(OperatorError, match="ConvTranspose with bias in padding"):
        _computed(writer, made, data=[[[1, 2]]])


def test_momentum_is_that_of_the_file() -> None:
    writer = Writer()
    tensors = [writer.weight(name, 3) for name in ("scale", "offset", "mean", "var")]
    made = writer.node("BatchNormalization", "data", *tensors, momentum=0.5)
    symbol, _ = tofu.from_onnx(writer.model(made, data=[2, 3]).SerializeToString())
    assert symbol.heads[0].node.attributes["momentum"] == 0.5


def test_places_are_whole_numbers() -> None:
    writer = Writer()
    _, places = writer.node("TopK", "data", writer.integers("count", 4), outputs=2)
    half = writer.node("Div", places, writer.value("two", np.array(2)))
    np.testing.assert_array_equal(_computed(writer, half, data=[4, 1, 3, 2]), [0, 1, 1, 0])


def test_a_unit_matrix_has_the_type_that_it_says() -> None:
    writer = Writer()
    ones = writer.node("EyeLike", "data", dtype=onnx.TensorProto.INT64)
    half = writer.node("Div", ones, writer.value("two", np.array(2)))
    made = writer.node("Add", "data", writer.node("Cast", half, to=onnx.TensorProto.FLOAT))
    np.testing.assert_array_equal(_computed(writer, made, data=np.ones((2, 2))), np.ones((2, 2)))


def test_gathered_elements_of_fewer_rows_have_a_gradient() -> None:
    writer = Writer()
    places = writer.value("places", np.array([[0, -1], [2, 3]]))
    gathered = writer.node("GatherElements", writer.weight("w", 3, 4), places, axis=1)
    model = writer.model(writer.node("Add", gathered, "data"), data=[2, 2])
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    found = by_tofu(symbol, parameters, {"data": np.zeros((2, 2), np.float32)})
    np.testing.assert_array_equal(found.gradients["w"], [[1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]])


def test_random_numbers_have_elements() -> None:
    writer = Writer()
    drawn = writer.node("RandomNormal", shape=[2, 0])
    with pytest.raises(OperatorError, match="tensor without elements"):
        _computed(writer, writer.node("Add", drawn, "data"), data=np.ones(1))


def test_gathered_constants_have_a_limit() -> None:
    writer = Writer()
    rows = writer.integers("rows", *range(1 << 14))
    table = writer.node("Reshape", rows, writer.integers("wide", 1, 1 << 14))
    zeros = writer.node(
        "ConstantOfShape",
        writer.integers("many", 1 << 14, 1),
        value=onnx.helper.make_tensor("v", 7, [1], [0]),
    )
    with pytest.raises(GraphError, match="a constant would have 268,435,456 elements"):
        _computed(writer, writer.node("GatherND", table, zeros), data=np.ones(1))


DRAWN: dict[str, tuple[dict[str, Any], float, float]] = {
    "RandomUniform": ({"shape": [200, 300], "low": 2.0, "high": 4.0}, 3.0, 1 / 3**0.5),
    "RandomNormal": ({"shape": [200, 300], "mean": 2.0, "scale": 3.0}, 2.0, 3.0),
    "RandomNormalLike": ({"scale": 2.0}, 0.0, 2.0),
    "Bernoulli": ({}, 0.25, 0.1875**0.5),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_random_numbers_have_the_distribution(kind: str) -> None:
    settings, mean, deviation = DRAWN[kind]
    writer = Writer()
    inputs = [] if "shape" in settings else ["data"]
    zeros = writer.node("Mul", "data", writer.value("zero", np.zeros(1, "f")))
    model = writer.model(writer.node("Add", writer.node(kind, *inputs, **settings), zeros), data=[200, 300])
    symbol, parameters = tofu.from_onnx(model.SerializeToString())
    graph = tofu.inference_graph(symbol, {"data": (200, 300)})
    names = [tensor.name for tensor in graph.tensors if tensor.name.endswith("seed")]
    seeds = {name: np.full(1, 10 + 7 * place, "f") for place, name in enumerate(names)}
    (output,) = symbol.list_outputs()
    found = []
    for workers in (1, 4):
        with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers))) as executor:
            for name, value in {**parameters, **seeds, "data": np.full((200, 300), 0.25, "f")}.items():
                executor.write(name, value)
            executor.run()
            found.append(executor.read(output))
    assert (found[0] == found[1]).all()
    assert abs(found[0].mean() - mean) < 0.05
    assert abs(found[0].std() - deviation) < 0.05
