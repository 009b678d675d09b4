"""The purpose of dimensions follows from descriptions, roles and phases."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner.methods.meshes.axes import Axes, find_axes
from tofu.partitioner.methods.meshes.indexing import indexing
from tofu.partitioner.problem.classes import build_problem


@pytest.fixture(scope="module")
def gpt():
    model = tofu.models.get("gpt-1-16", batch=8, steps=4, vocabulary=11, heads=2, dropout=0.0)
    return model.training_graph()


@pytest.fixture(scope="module")
def found(gpt) -> tuple[Axes, dict[str, int], dict[str, int]]:
    problem = build_problem(gpt)
    tensors = {t.name: problem.tensor_class[t.index] for t in gpt.tensors}
    operations = {o.name: problem.operation_class[o.index] for o in gpt.operations}
    return find_axes(problem), tensors, operations


def test_samples_are_followed_through_reshapes_and_sums(gpt, found):
    axes, tensors, operations = found
    for tensor in gpt.tensors:
        if tensor.role == "activation" and not tensor.name.startswith("position"):
            assert axes.samples.dimension[tensors[tensor.name]] == 0
        if tensor.role in ("parameter", "state", "scalar"):
            assert tensors[tensor.name] not in axes.samples.dimension
    for operation in gpt.operations:
        has_samples = operations[operation.name] in axes.samples.variable
        alone = ("position", "update", "grad(embed_weight)", "embed_sum.grad")
        assert has_samples != operation.name.startswith(alone[:3])
    assert axes.samples.variable[operations["layer0_hidden.product"]] == "n0"
    assert axes.samples.variable[operations["layer0_hidden.grad.FullyConnected_product.weight"]] == "n0"


def test_positions_are_data_and_features_are_not(found):
    axes, tensors, operations = found
    assert axes.data_dimensions[tensors["layer0_gelu_output"]] == {0, 1}
    assert axes.data_dimensions[tensors["layer0_attention_scores_output"]] == {0, 2, 3}
    assert axes.data_variables[operations["layer0_hidden.product"]] == {"n0", "n1"}


def test_products_with_parameters_and_tables(gpt, found):
    axes, tensors, operations = found
    weights = {t.name for t in gpt.tensors if t.role == "parameter" and len(t.shape) == 2 and t.alias is None}
    kept = {name for name in weights if name.startswith(("embed", "layer"))}
    contracted = {name for name, number in tensors.items() if number in axes.contracted and name in weights}
    assert contracted == kept - {"position_weight"}
    assert {name for name in weights if tensors[name] in axes.tables} == {"embed_weight"}
    assert axes.contracting[operations["layer0_hidden.product"]] == ("h", "k")
    assert operations["layer0_attention_norm"] not in axes.contracting


def test_gradients_that_are_added_stay_terms(found):
    axes, tensors, _ = found
    assert {name for name, number in tensors.items() if number in axes.samples.terms} == {
        "grad(embed_weight)#1",
        "grad(embed_weight)#2",
        "grad(position_output)",
    }
    assert tensors["grad(layer0_attention_norm_output)#1"] in axes.sums


def test_halves_of_a_window_overlap_and_a_looked_up_dimension_has_no_variable():
    net = tofu.sym.Convolution(
        tofu.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv", no_bias=True
    )
    (conv,) = tofu.inference_graph(net, {"data": (2, 3, 8, 8)}).operations
    window = indexing(conv.bound)
    assert window.dimensions("x0", ("data",), disjoint=False) == {2}
    assert window.dimensions("x0", ("data",)) == frozenset()
    assert window.dimensions("f", ("filters",)) | window.dimensions("f", ("weight",)) == {0}
    table = tofu.sym.Embedding(tofu.sym.Variable("data"), input_dim=7, output_dim=4, name="table")
    (rows,) = tofu.inference_graph(table, {"data": (8,)}).operations
    assert [indexing(rows.bound).is_gathered((name,)) for _, name in rows.bound.read_places] == [False, True]
