"""Branches are chosen and loops are unrolled if constants decide on them; otherwise the node is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import tofu  # noqa: E402
from tofu.errors import GraphError, TofuError  # noqa: E402

from .evaluate import evaluate  # noqa: E402

WEIGHT = np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32) * 0.3


def _value(name: str, *shape: int, dtype: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, list(shape))


def _number(name: str, value: Any, dtype: Any = np.int64) -> Any:
    return numpy_helper.from_array(np.array(value, dtype), name)


def _model(
    nodes: list[Any], outputs: list[Any], kept: Sequence[Any] = (), inputs: list[Any] | None = None
) -> bytes:
    inputs = [_value("x", 2, 4)] if inputs is None else inputs
    graph = helper.make_graph(nodes, "g", inputs, outputs, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString()


def _recurrent_body(*more: Any) -> Any:
    """Return a body `s = tanh(s @ weight)`, whose weight is outside of it."""
    nodes = [
        helper.make_node("MatMul", ["s", "weight"], ["p"], name="mul"),
        helper.make_node("Tanh", ["p"], ["t"], name="tanh"),
        helper.make_node("Identity", ["c"], ["c_out"]),
    ]
    given = [_value("i", dtype=TensorProto.INT64), _value("c", dtype=TensorProto.BOOL), _value("s", 2, 4)]
    made = [_value("c_out", dtype=TensorProto.BOOL), _value("t", 2, 4), _value("t", 2, 4)]
    return helper.make_graph([*nodes, *more], "body", given, made)


def _loop(steps: int) -> bytes:
    node = helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], name="loop", body=_recurrent_body())
    kept = [_number("steps", steps), numpy_helper.from_array(WEIGHT, "weight")]
    return _model([node], [_value("last", 2, 4), _value("all", steps, 2, 4)], kept)


def _states(steps: int, x: Any) -> Any:
    rows = []
    for _ in range(steps):
        x = np.tanh(x @ WEIGHT)
        rows.append(x)
    return np.stack(rows)


def test_a_loop_is_unrolled_and_its_rows_are_stacked() -> None:
    symbol, parameters = tofu.from_onnx(_loop(3))
    assert parameters.keys() == {"weight"}
    assert {"loop.0.mul", "loop.2.tanh"} <= {node.name for node in symbol.nodes}
    x = np.ones((2, 4), np.float32)
    last, every = evaluate(symbol, {"x": x, **parameters})
    np.testing.assert_allclose(every, _states(3, x), rtol=1e-5)
    np.testing.assert_allclose(last, every[-1])


def test_a_long_loop_meets_no_limit_of_recursion() -> None:
    symbol, parameters = tofu.from_onnx(_loop(600))
    x = np.ones((2, 4), np.float32)
    _, every = evaluate(symbol, {"x": x, **parameters})
    np.testing.assert_allclose(every, _states(600, x), rtol=1e-4, atol=1e-6)


def test_an_unrolled_loop_trains_on_workers_as_on_one() -> None:
    symbol, parameters = tofu.from_onnx(_loop(4))
    graph = tofu.training_graph(tofu.sym.MakeLoss(symbol[1]), {"x": (2, 4)})
    after = []
    for workers in (1, 2):
        with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers))) as executor:
            executor.write("weight", parameters["weight"])
            executor.write("x", np.ones((2, 4), np.float32))
            executor.write("learning_rate", [0.1])
            executor.run()
            after.append(executor.read("weight"))
    assert np.abs(after[0] - parameters["weight"]).max() > 0.01
    np.testing.assert_allclose(after[1], after[0], rtol=1e-5)


def test_a_condition_on_the_step_ends_a_loop() -> None:
    more = helper.make_node("Less", ["i", "most"], ["goes_on"])
    body = _recurrent_body(more)
    body.output[0].name = "goes_on"
    node = helper.make_node("Loop", ["", "start", "x"], ["last", "all"], name="loop", body=body)
    kept = [_number("most", 4), _number("start", True, bool), numpy_helper.from_array(WEIGHT, "weight")]
    symbol, _ = tofu.from_onnx(_model([node], [_value("last", 2, 4), _value("all", 5, 2, 4)], kept))
    assert symbol.infer_shape()[1] == [(2, 4), (5, 2, 4)]


def test_a_condition_that_depends_on_data_is_named() -> None:
    more = [
        helper.make_node("ReduceSum", ["t"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["goes_on"]),
    ]
    body = _recurrent_body(*more)
    body.output[0].name = "goes_on"
    node = helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], name="loop", body=body)
    kept = [_number("steps", 4), _number("zero", 0, np.float32), numpy_helper.from_array(WEIGHT, "weight")]
    with pytest.raises(TofuError, match=r"'loop' \(Loop\): the condition after step 0 depends on data; give"):
        tofu.from_onnx(_model([node], [_value("last", 2, 4)], kept))


def test_a_number_of_steps_that_is_fed_is_named() -> None:
    node = helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], name="loop", body=_recurrent_body())
    inputs = [_value("x", 2, 4), _value("steps", dtype=TensorProto.INT64)]
    kept = [numpy_helper.from_array(WEIGHT, "weight")]
    with pytest.raises(TofuError, match=r"'loop' \(Loop\): the value of input 'steps' must be known"):
        tofu.from_onnx(_model([node], [_value("last", 2, 4)], kept, inputs))


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_a_constant_chooses_is_taken(taken: bool) -> None:
    def side(kind: str) -> Any:
        return helper.make_graph(
            [helper.make_node(kind, ["x"], ["y"], name=kind)], kind, [], [_value("y", 2, 4)]
        )

    node = helper.make_node(
        "If", ["chosen"], ["z"], name="if", then_branch=side("Relu"), else_branch=side("NotKnown")
    )
    model = _model([node], [_value("z", 2, 4)], [_number("chosen", taken, bool)])
    if not taken:
        with pytest.raises(
            GraphError, match="these operators are not known, at these nodes:\n  NotKnown: 'NotKnown'"
        ):
            tofu.from_onnx(model)
        return
    symbol, _ = tofu.from_onnx(model)
    assert [node.name for node in symbol.nodes] == ["x", "Relu"]


def _nested(outer: int, inner: int) -> bytes:
    """Return a loop in a loop: the inner one adds the number of the outer step and the body's own weight."""
    inside = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["s2", "f"], ["a"]),
            helper.make_node("Add", ["a", "own"], ["b"]),
        ],
        "inner",
        [_value("j", dtype=TensorProto.INT64), _value("d", dtype=TensorProto.BOOL), _value("s2", 2, 4)],
        [_value("d", dtype=TensorProto.BOOL), _value("b", 2, 4)],
        [numpy_helper.from_array(np.ones(4, np.float32), "own")],
    )
    body = helper.make_graph(
        [helper.make_node("Loop", ["inner_steps", "c", "s"], ["r"], name="inner", body=inside)],
        "outer",
        [_value("i", dtype=TensorProto.INT64), _value("c", dtype=TensorProto.BOOL), _value("s", 2, 4)],
        [_value("c", dtype=TensorProto.BOOL), _value("r", 2, 4)],
    )
    node = helper.make_node("Loop", ["outer_steps", "", "x"], ["y"], name="outer", body=body)
    return _model([node], [_value("y", 2, 4)], [_number("outer_steps", outer), _number("inner_steps", inner)])


def test_a_loop_in_a_loop_sees_the_names_around_it_and_has_its_weights_once() -> None:
    symbol, parameters = tofu.from_onnx(_nested(3, 2))
    assert parameters.keys() == {"own"}
    (found,) = evaluate(symbol, {"x": np.zeros((2, 4)), **parameters})
    assert (found == 6 + 2 * (0 + 1 + 2)).all()


def test_a_loop_of_a_billion_steps_is_refused_at_once() -> None:
    for outer, inner in ((10**9, 1), (1, 2**62), (10**9, 0)):
        with pytest.raises(
            GraphError, match="loops and functions make more than 65,536 nodes, or 4,096 that differ"
        ):
            tofu.from_onnx(_nested(outer, inner))


GROWS = (helper.make_node("Concat", ["s", "s"], ["t"], axis=0),)
COMPUTES = (
    helper.make_node("Expand", ["i", "size"], ["large"]),
    helper.make_node("ReduceMax", ["large"], ["most"], keepdims=0),
    helper.make_node("Sub", ["most", "most"], ["zero"]),
    helper.make_node("Cast", ["zero"], ["added"], to=TensorProto.FLOAT),
    helper.make_node("Add", ["s", "added"], ["t"], name="add"),
)


@pytest.mark.parametrize("steps", ["", "steps"], ids=["without end", "40 steps"])
@pytest.mark.parametrize(
    ("nodes", "size"), [(COMPUTES, 1), (GROWS, 1), (COMPUTES, 1 << 18)], ids=["small", "shapes", "constants"]
)
def test_new_shapes_and_large_constants_count_as_several_nodes(
    nodes: Sequence[Any], size: int, steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tofu.importers.onnx.importer.MOST_UNROLLED", 512)
    given = [_value("i", dtype=TensorProto.INT64), _value("c", dtype=TensorProto.BOOL), _value("s", 2)]
    body = helper.make_graph(nodes, "body", given, [_value("c", dtype=TensorProto.BOOL), _value("t", 2)])
    loop = helper.make_node("Loop", [steps, "true", "x"], ["y"], name="loop", body=body)
    kept = [_number("true", True, np.bool_), _number("size", [size]), _number("steps", 40)]
    model = _model([loop], [_value("y", 2)], kept, [_value("x", 2)])
    if steps and nodes is COMPUTES and size == 1:
        assert "loop.39.add" in {node.name for node in tofu.from_onnx(model)[0].nodes}
        return
    with pytest.raises(GraphError, match="loops and functions make more than 512 nodes, or 32 that differ"):
        tofu.from_onnx(model)


def _scan(**attributes: Any) -> Any:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "r"], ["t"], name="add")],
        "body",
        [_value("s", 2), _value("r", 2)],
        [_value("t", 2), _value("t", 2)],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1, **attributes
    )
    return _model([node], [_value("last", 2), _value("all", 4, 2)], [_number("start", [0, 0], np.float32)])


def test_a_scan_goes_over_any_dimension_in_both_directions() -> None:
    model = _scan(
        scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[-1], scan_output_directions=[1]
    )
    symbol, parameters = tofu.from_onnx(model)
    x = np.random.default_rng(0).standard_normal((2, 4))
    last, every = evaluate(symbol, {"x": x, **parameters})
    np.testing.assert_allclose(every, x[:, ::-1].cumsum(1)[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(last, x.sum(1), rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"scan_input_axes": [7]}, "axis 7 of a tensor of 2 dimensions"),
        ({"scan_output_axes": [0, 1]}, "scan"),
        ({"scan_input_axes": [0, 1]}, "contradicts itself"),
        ({"scan_input_axes": [0]}, "do not fit each other"),
    ],
)
def test_a_scan_that_contradicts_itself_is_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(TofuError, match=message):
        tofu.from_onnx(_scan(**attributes))


def test_bodies_that_contradict_their_nodes_are_refused() -> None:
    body = _recurrent_body()
    del body.input[2]
    kept = [_number("steps", 2), numpy_helper.from_array(WEIGHT, "weight")]
    node = helper.make_node("Loop", ["steps", "", "x"], ["last"], name="loop", body=body)
    with pytest.raises(GraphError, match="reads 's', which is neither"):
        tofu.from_onnx(_model([node], [_value("last", 2, 4)], kept))
    node = helper.make_node("Loop", ["steps", ""], ["last"], name="loop", body=_recurrent_body())
    with pytest.raises(GraphError, match="its graph has 3 inputs, but the node gives 2"):
        tofu.from_onnx(_model([node], [_value("last", 2, 4)], kept))
    node = helper.make_node("Loop", ["steps", "", "x"], ["last"], name="loop")
    with pytest.raises(GraphError, match="Loop without the graph 'body'"):
        tofu.from_onnx(_model([node], [_value("last", 2, 4)], kept))
