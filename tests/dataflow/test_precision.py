"""Which tensors of a graph are stored in 16 bits, and what products read then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tofu
from tofu import GraphError
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Operation, Role, Tensor
from tofu.dataflow.training import gradient_graph, inference_graph, training_graph
from tofu.dataflow.validate import validate

from .test_training import SHAPES, perceptron


def named(graph: Graph, name: str) -> Tensor:
    return next(tensor for tensor in graph.tensors if tensor.name == name)


def casts(graph: Graph) -> list[Operation]:
    return [o for o in graph.operations if o.name.startswith(("float16(", "bfloat16("))]


def readers(graph: Graph, tensor: int) -> list[Operation]:
    """Operations that read a tensor's elements, not its shape alone."""
    return [
        o
        for o in graph.operations
        if any(o.inputs[o.bound.description.tensor_names.index(name)] == tensor for name in o.bound.reads)
    ]


def mixed(model: str, dtype: str = "float16") -> Graph:
    graph = tofu.models.get(model).training_graph(dtype=dtype)
    validate(graph)
    return graph


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_lasts_and_what_is_small_stays_wide(dtype: str) -> None:
    graph = training_graph(perceptron(), SHAPES, "adam", dtype=dtype)
    validate(graph)
    for tensor in graph.tensors:
        wide = tensor.role.persistent or len(tensor.shape) < 2 or tensor.index in graph.outputs
        assert tensor.dtype == ("float32" if wide else dtype), tensor
        assert tensor.itemsize == (4 if wide else 2)
    assert named(graph, "grad(fc1_bias)").dtype == "float32"
    assert named(graph, "grad(fc1_weight)").dtype == dtype


def test_an_output_that_a_product_makes_is_narrow_like_its_factors() -> None:
    network = sym.FullyConnected(sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")
    graph = inference_graph(network, {"data": (4, 6)}, dtype="float16")
    assert [graph.tensors[index].dtype for index in graph.outputs] == ["float16"]
    graph = gradient_graph(perceptron(), SHAPES, ["fc1_weight", "fc1_bias"], dtype="bfloat16")
    assert [graph.tensors[index].dtype for index in graph.outputs] == ["float32", "bfloat16", "float32"]


@pytest.mark.parametrize("model", ["lenet", "lstm", "transformer-6-512", "wresnet-28-10"])
def test_products_read_and_make_one_type(model: str) -> None:
    graph = mixed(model)
    products = [o for o in graph.operations if o.bound.factors is not None]
    assert len(products) > 10
    for operation in products:
        reads = dict(zip(operation.bound.description.tensor_names, operation.inputs, strict=True))
        read = [reads[name] for name in operation.bound.factors or ()]
        assert {graph.tensors[i].dtype for i in (*read, *operation.outputs)} == {"float16"}, operation.name


def test_a_weight_is_copied_once_for_all_its_readers() -> None:
    graph = mixed("lstm")
    weights = ["lstm_l0_i2h", "lstm_l0_h2h", "lstm_l1_i2h", "lstm_l1_h2h", "pred"]
    assert [o.name for o in casts(graph)] == [f"float16({name}_weight)" for name in weights]
    for cast in casts(graph):
        assert {o.phase for o in readers(graph, cast.outputs[0])} == {"forward", "backward"}
        assert [o.phase for o in readers(graph, cast.inputs[0])] == ["forward", "update"], "the copy first"


def test_copies_are_of_parameters_and_data_alone() -> None:
    graph = mixed("wresnet-28-10", "bfloat16")
    weights = {
        t.index for t in graph.tensors if t.role is Role.PARAMETER and len(t.shape) > 1 and t.alias is None
    }
    copied = [cast.inputs[0] for cast in casts(graph)]
    assert len(set(copied)) == len(copied)
    assert {graph.tensors[i].name for i in copied} - {graph.tensors[i].name for i in weights} <= {"data"}


TURNED = sym.transpose(sym.Variable("data"), axes=(1, 0), name="turned")
POSITIONS: dict[str, Callable[[], sym.Symbol]] = {
    "an index": lambda: sym.Embedding(TURNED, input_dim=9, output_dim=2),
    "an index of an index": lambda: sym.Embedding(sym.abs(TURNED * 2 + 1), input_dim=9, output_dim=2),
    "a class": lambda: sym.one_hot(TURNED, depth=9),
    "a condition of it": lambda: sym.broadcast_mul(
        sym.one_hot(TURNED, depth=9), sym.one_hot(TURNED, depth=9)
    ),
}


@pytest.mark.parametrize("use", POSITIONS)
def test_positions_are_not_rounded(use: str) -> None:
    graph = inference_graph(sym.sqrt(POSITIONS[use](), name="out"), {"data": (4, 3)}, dtype="bfloat16")
    assert named(graph, "turned_output").dtype == "float32"
    assert any(tensor.dtype == "bfloat16" for tensor in graph.tensors)


def test_what_only_chooses_a_position_may_be_rounded() -> None:
    scores = sym.FullyConnected(sym.Variable("data"), num_hidden=3000, name="fc")
    chosen = sym.argmax(sym.Reshape(scores, shape=(2, 2, -1)), axis=2, name="chosen")
    graph = inference_graph(
        sym.Embedding(chosen, input_dim=3000, output_dim=2), {"data": (4, 6)}, dtype="bfloat16"
    )
    assert named(graph, "chosen_output").dtype == "float32"
    assert named(graph, "fc_output").dtype == "bfloat16"


def test_places_of_maxima_in_windows_are_not_rounded() -> None:
    graph = mixed("alexnet", "bfloat16")
    wide = {
        t.name for t in graph.tensors if t.dtype == "float32" and len(t.shape) > 1 and not t.role.persistent
    }
    assert wide == {"softmax_output", "pool1.grad.first", "pool2.grad.first", "pool5.grad.first"}


def test_labels_that_are_turned_are_not_rounded() -> None:
    label = sym.Reshape(sym.transpose(sym.Variable("label"), axes=(1, 0), name="turned"), shape=(-1,))
    network = sym.SoftmaxOutput(sym.Variable("weight", shape=(6, 3000)), label, name="softmax")
    graph = training_graph(network, {"label": (2, 3)}, dtype="float16")
    assert named(graph, "turned_output").dtype == "float32"


def test_types_are_part_of_the_fingerprint() -> None:
    prints = {
        training_graph(perceptron(), SHAPES, dtype=dtype).fingerprint
        for dtype in ("float32", "float16", "bfloat16")
    }
    assert len(prints) == 3


def test_a_type_that_is_not_known_is_an_error() -> None:
    with pytest.raises(
        GraphError, match="cannot be computed in 'int8'; use one of float32, float64, float16"
    ):
        training_graph(perceptron(), SHAPES, dtype="int8")
