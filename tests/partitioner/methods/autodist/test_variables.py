"""Variables of training graphs, and what belongs to them."""

from __future__ import annotations

import tofu
from tofu.dataflow import sym
from tofu.dataflow.training import training_graph
from tofu.partitioner.methods.autodist.variables import find_variables

from .embedded import embedded


def test_states_gradients_and_updates_belong_to_a_parameter() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph("adam")
    weight = find_variables(graph)[0]
    assert weight.tensor.name == "fc1_weight"
    assert set(weight.together) == {
        "fc1_weight",
        "mean(fc1_weight)",
        "var(fc1_weight)",
        "grad(fc1_weight)",
    }
    assert [update.name for update in weight.updates] == ["update(fc1_weight)"]
    assert weight.readers == ("fc1.product", "fc1.grad.FullyConnected_product.weight")


def test_an_accumulator_and_what_adds_to_it_belong_to_a_parameter() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph(accumulate=2)
    weight = find_variables(graph)[0]
    assert {"total(grad(fc1_weight))", "grad(fc1_weight)"} <= set(weight.together)
    assert [each.name for each in weight.updates] == ["accumulate(grad(fc1_weight))", "update(fc1_weight)"]


def test_what_updates_of_two_variables_read_belongs_to_neither() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph("adamw")
    assert "update(update_count)" in {each.name for each in graph.operations}
    for variable in find_variables(graph):
        assert [each.name for each in variable.updates] == [f"update({variable.tensor.name})"]


def test_what_variables_share_belongs_to_none_of_the_same_shape() -> None:
    """A count of updates and a rate have the shape of a bias with one element."""
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=1, name="fc")
    net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    graph = training_graph(net, {"data": (8, 4), "label": (8, 1)}, "adamw")
    bias = find_variables(graph)[1]
    assert set(bias.together) == {"fc_bias", "grad(fc_bias)", "mean(fc_bias)", "var(fc_bias)"}
    nbytes = sum(each.tensor.nbytes for each in find_variables(graph))
    assert tofu.partition(graph, 4, "ps").cost_bytes == 2 * 3 * nbytes


def test_a_variable_is_sparse_if_data_choose_its_rows() -> None:
    assert {each.tensor.name: each.sparse for each in find_variables(embedded())} == {
        "table_weight": True,
        "fc_weight": False,
        "fc_bias": False,
    }


def test_one_reader_that_looks_up_rows_makes_a_variable_sparse() -> None:
    table = sym.Variable("table_weight")
    dense = sym.FullyConnected(sym.Variable("data"), table, num_hidden=7, no_bias=True, name="dense")
    picked = sym.FullyConnected(sym.take(table, sym.Variable("rows")), num_hidden=7, no_bias=True, name="fc")
    net = sym.LinearRegressionOutput(sym.elemwise_add(dense, picked), sym.Variable("label"), name="out")
    graph = training_graph(net, {"data": (4, 3), "rows": (4,), "label": (4, 7)})
    found = {each.tensor.name: each.sparse for each in find_variables(graph)}
    assert found == {"table_weight": True, "fc_weight": False}


def test_a_gradient_of_two_variables_belongs_to_the_first() -> None:
    left, right = (sym.Variable(f"{side}_weight") for side in ("left", "right"))
    both = sym.elemwise_add(left, right, name="both")
    net = sym.FullyConnected(sym.Variable("data"), both, num_hidden=3, no_bias=True, name="fc")
    net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (4, 5), "label": (4, 3)}
    first, second = find_variables(training_graph(net, shapes, "sgd"))
    assert set(first.together).isdisjoint(second.together)
    assert any(name.startswith("grad(") for name in first.together)
