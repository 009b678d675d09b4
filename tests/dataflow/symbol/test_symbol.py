from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tofu import GraphError, OperatorError
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.node import nearest
from tofu.dataflow.symbol import Symbol


def perceptron() -> Symbol:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
    body = sym.Activation(body, act_type="relu", name="relu1")
    body = sym.FullyConnected(body, num_hidden=3, name="fc2")
    return sym.SoftmaxOutput(body, name="softmax")


def test_a_function_without_its_decorator_is_no_operator() -> None:
    def double(data):
        return lambda i: data[i] * 2

    with pytest.raises(OperatorError, match=r"found <function .*double.*; decorate a function with @tofu.op"):
        sym.apply(double, sym.Variable("data"))


def test_parameters_and_labels_appear_by_themselves() -> None:
    net = perceptron()
    assert net.list_arguments() == [
        "data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "softmax_label",
    ]  # fmt: skip
    assert net.list_outputs() == ["softmax_output"]
    assert net.list_auxiliary_states() == []
    assert net.name == "softmax"


def test_an_attribute_can_take_an_argument_away() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, no_bias=True, name="fc")
    assert net.list_arguments() == ["data", "fc_weight"]


def test_auxiliary_states_are_listed_apart() -> None:
    net = sym.BatchNorm(sym.Variable("data"), name="bn")
    assert net.list_arguments() == ["data", "bn_gamma", "bn_beta"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


def test_automatic_names_count_from_zero_in_a_scope() -> None:
    def build() -> list[str]:
        with NameScope():
            x = sym.Variable("x")
            y = sym.FullyConnected(x, num_hidden=2)
            z = sym.FullyConnected(y, num_hidden=2)
            return [node.name for node in (z + y * 2).nodes if not node.is_variable]

    assert build() == ["fullyconnected0", "fullyconnected1", "_mulscalar0", "_plus0"]
    assert build() == build()


def test_an_automatic_name_keeps_the_alias_that_was_called() -> None:
    with NameScope():
        assert sym.split(sym.Variable("x"), num_outputs=2)[0].name == "split0"
        assert sym.SliceChannel(sym.Variable("x"), num_outputs=2)[0].name == "slicechannel0"


def test_a_prefix() -> None:
    with NameScope("left_"):
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    assert net.list_arguments() == ["data", "left_fc_weight", "left_fc_bias"]


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda a, b: a + b, "elemwise_add"),
        (lambda a, b: a - b, "elemwise_sub"),
        (lambda a, b: a * b, "elemwise_mul"),
        (lambda a, b: a / b, "elemwise_div"),
        (lambda a, b: a + 2, "_plus_scalar"),
        (lambda a, b: 2 + a, "_plus_scalar"),
        (lambda a, b: a - 2, "_minus_scalar"),
        (lambda a, b: 2 - a, "_rminus_scalar"),
        (lambda a, b: a * 2, "_mul_scalar"),
        (lambda a, b: a / 2, "_div_scalar"),
        (lambda a, b: 2 / a, "_rdiv_scalar"),
        (lambda a, b: -a, "_mul_scalar"),
        (lambda a, b: a % b, "_mod"),
        (lambda a, b: 7 % a, "_rmod_scalar"),
        (lambda a, b: a < b, "_lesser"),
        (lambda a, b: a < 2, "_lesser_scalar"),
        (lambda a, b: a >= b, "_greater_equal"),
        (lambda a, b: a <= 2, "_lesser_equal_scalar"),
    ],
)
def test_arithmetic(build, operator) -> None:  # type: ignore[no-untyped-def]
    result = build(sym.Variable("a"), sym.Variable("b"))
    made = result.heads[0].node.operator
    assert made is sym.registry.get(operator)


def test_ones_and_the_names_of_the_namespace() -> None:
    assert sym.ones((2, 3), name="one").infer_shape() == ([], [(2, 3)], [])
    assert {"Variable", "ones", "FullyConnected"} <= set(dir(sym))


def test_a_symbol_is_true_and_its_nodes_are_named() -> None:
    data = sym.Variable("data")
    assert data
    assert [repr(node) for node in sym.exp(data, name="e").nodes] == ["<variable data>", "<exp e>"]


def test_numbers_of_numpy_are_numbers() -> None:
    scaled = np.float32(2) * sym.Variable("a") - np.int64(3)
    assert [node.text for node in scaled.nodes[1:]] == [{"scalar": "2.0"}, {"scalar": "3"}]


def test_arithmetic_with_something_else_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"combined with a symbol or a number .* not with 'b'"):
        sym.Variable("a") + "b"


def test_inputs_by_name_and_position() -> None:
    x, w = sym.Variable("x"), sym.Variable("w")
    net = sym.FullyConnected(weight=w, data=x, num_hidden=2, name="fc")
    assert net.list_arguments() == ["x", "w", "fc_bias"]
    for skipped in (
        sym.FullyConnected(x, None, w, num_hidden=2, name="fc"),
        sym.FullyConnected(x, weight=None, bias=w, num_hidden=2, name="fc"),
    ):
        assert skipped.list_arguments() == ["x", "fc_weight", "w"]
    with pytest.raises(OperatorError, match="input 'data' is given by position and by name"):
        sym.FullyConnected(x, data=x, num_hidden=2)
    with pytest.raises(OperatorError, match="has no input 'wight'; did you mean 'weight'"):
        sym.FullyConnected(x, wight=w, num_hidden=2)
    with pytest.raises(OperatorError, match="takes 3 inputs"):
        sym.FullyConnected(x, w, w, w, num_hidden=2)
    with pytest.raises(OperatorError, match="input 'weight' is 3, expected a symbol"):
        sym.FullyConnected(x, 3, num_hidden=2)  # type: ignore[arg-type]


def test_any_number_of_inputs() -> None:
    net = sym.Concat(sym.Variable("a"), sym.Variable("b"), sym.Variable("c"), dim=1, name="joined")
    assert net.list_arguments() == ["a", "b", "c"]
    assert net.attr("num_args") == "3"


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"no operator 'FullyConected'.*did you mean 'FullyConnected'"):
        sym.FullyConected  # noqa: B018
    with pytest.raises(OperatorError, match="num_hiden"):
        sym.FullyConnected(sym.Variable("x"), num_hiden=3)


def test_several_outputs_must_be_selected_from() -> None:
    parts = sym.SliceChannel(sym.Variable("x"), num_outputs=3, name="parts")
    assert len(parts) == 3
    assert parts.list_outputs() == ["parts_output0", "parts_output1", "parts_output2"]
    assert [part.list_outputs() for part in parts] == [[name] for name in parts.list_outputs()]
    assert parts["parts_output1"].heads == parts[1].heads
    assert parts[-1].heads == parts[2].heads
    with pytest.raises(GraphError, match="a symbol with 3 outputs"):
        sym.Activation(parts, act_type="relu")
    with pytest.raises(GraphError, match="no output named 'parts_output7'"):
        parts["parts_output7"]
    with pytest.raises(IndexError, match="output 3 of a symbol with 3 outputs"):
        parts[3]


def test_internals_and_children() -> None:
    net = perceptron()
    inner = net.get_internals()["fc1_output"]
    assert inner.list_arguments() == ["data", "fc1_weight", "fc1_bias"]
    children = inner.get_children()
    assert children is not None
    assert children.list_outputs() == ["data", "fc1_weight", "fc1_bias"]
    assert sym.Variable("x").get_children() is None


def test_a_group_lists_shared_arguments_once() -> None:
    x = sym.Variable("x")
    both = sym.Group(
        [sym.Activation(x, act_type="relu", name="r"), sym.Activation(x, act_type="tanh", name="t")]
    )
    assert both.list_arguments() == ["x"]
    assert both.list_outputs() == ["r_output", "t_output"]
    assert both.name is None
    with pytest.raises(GraphError, match="made of symbols"):
        sym.Group([x, 1])  # type: ignore[list-item]
    with pytest.raises(GraphError, match="at least one output"):
        sym.Group([])


def test_a_repeated_name_is_refused_when_it_is_given() -> None:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    with pytest.raises(GraphError, match="two nodes of the graph are named 'fc_weight'"):
        sym.FullyConnected(body, num_hidden=2, name="fc")
    body = sym.Activation(sym.Variable("data"), act_type="relu", name="act")
    with pytest.raises(GraphError, match=r"'act'.*give one of them another name="):
        sym.Activation(body, act_type="relu", name="act")


def test_a_repeated_name_far_below_is_found_when_the_symbol_is_used() -> None:
    body = sym.Activation(sym.Variable("data"), act_type="relu", name="act")
    for number in range(100):
        body = sym.Activation(body, act_type="relu", name=f"between{number}")
    last = sym.Activation(body, act_type="relu", name="act")
    with pytest.raises(GraphError, match="two nodes of the graph are named 'act'"):
        last.list_arguments()


def test_the_search_for_repeated_names_is_bounded() -> None:
    body = sym.Variable("data")
    for number in range(300):
        body = sym.Activation(body, act_type="relu", name=f"act{number}")
    found = nearest(body.heads[0].node, 64)
    assert [node.name for node in found] == [f"act{number}" for number in range(299, 234, -1)]


def test_a_network_can_be_built_again_on_the_same_data() -> None:
    data = sym.Variable("data")
    first = sym.FullyConnected(data, num_hidden=2, name="fc")
    second = sym.FullyConnected(data, num_hidden=2, name="fc")
    assert first.list_arguments() == second.list_arguments()
    with pytest.raises(GraphError, match="named 'fc_weight'"):
        sym.Group([first, second])


def test_two_variables_of_one_name() -> None:
    with pytest.raises(GraphError, match="create the variable once"):
        (sym.Variable("a") + sym.Variable("a")).list_arguments()


def test_attributes_as_text() -> None:
    net = perceptron()
    fc1 = net.get_internals()["fc1_output"]
    assert fc1.attr("num_hidden") == "8"
    assert fc1.attr("no_bias") is None
    assert net.attr_dict()["fc1_weight"] == {"num_hidden": "8"}
    data = sym.Variable("d", shape=(2, 0), lr_mult=0.5, attr={"__layout__": "NT"})
    assert data.list_attr() == {"__layout__": "NT", "__shape__": "(2, 0)", "__lr_mult__": "0.5"}
    with pytest.raises(GraphError, match="a group has no attributes"):
        sym.Group([net, fc1]).attr("num_hidden")


def test_a_variable_needs_a_name() -> None:
    with pytest.raises(GraphError, match="name must be text"):
        sym.Variable("")


def test_an_auxiliary_state_cannot_be_computed_nor_read_elsewhere() -> None:
    x, state = sym.Variable("x"), sym.Variable("m")
    computed = sym.BatchNorm(x, moving_mean=sym.Activation(state, act_type="relu", name="r"), name="bn")
    with pytest.raises(GraphError, match="must be a variable, not 'r_output'"):
        computed.list_arguments()
    shared = sym.BatchNorm(x, moving_mean=state, name="bn") + state
    with pytest.raises(GraphError, match="'m' is an auxiliary state"):
        shared.list_arguments()


def test_copies_and_pickles() -> None:
    net = perceptron()
    assert copy.copy(net) is net
    assert copy.deepcopy(net) is net
    assert pickle.loads(pickle.dumps(net)).tojson() == net.tojson()


@pytest.mark.parametrize("operators", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain_of_operators(operators: int) -> None:
    with NameScope():
        body = sym.Variable("x")
        for _ in range(operators):
            body = body + 1
        assert len(body.nodes) == operators + 1
        assert body.list_arguments() == ["x"]
        assert body.infer_shape(x=(2, 3))[1] == [(2, 3)]
        del body


def test_what_a_subclass_makes_is_of_its_kind() -> None:
    class Own(Symbol):
        __slots__ = ()

    with NameScope():
        own = Own(sym.SliceChannel(sym.Variable("x"), num_outputs=2, name="slice").heads)
        first = own[0]
        made = [*own, first, own["slice_output1"], first + first, 2 - first, -first, abs(first), first > 1]
        made += [own.get_internals(), own.get_children(), first(x=sym.Variable("y"))]
    assert {type(symbol) for symbol in made} == {Own}
