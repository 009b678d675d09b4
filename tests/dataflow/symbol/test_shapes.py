from __future__ import annotations

import pytest

from tofu import OperatorError, ShapeError
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol import Symbol


def named(net: Symbol, **known: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    arguments, outputs, auxiliary = net.infer_shape(**known)
    return {
        **dict(zip(net.list_arguments(), arguments, strict=True)),
        **dict(zip(net.list_outputs(), outputs, strict=True)),
        **dict(zip(net.list_auxiliary_states(), auxiliary, strict=True)),
    }


def test_parameters_follow_from_data() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
    net = sym.SoftmaxOutput(net, name="softmax")
    assert named(net, data=(4, 5)) == {
        "data": (4, 5),
        "fc1_weight": (8, 5),
        "fc1_bias": (8,),
        "softmax_label": (4,),
        "softmax_output": (4, 8),
    }


def test_convolution_normalisation_and_pooling() -> None:
    net = sym.Convolution(
        sym.Variable("data"), kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=6, name="c"
    )
    net = sym.BatchNorm(net, name="bn")
    net = sym.Flatten(sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="p"), name="f")
    assert named(net, data=(2, 3, 8, 8)) == {
        "data": (2, 3, 8, 8),
        "c_weight": (6, 3, 3, 3),
        "c_bias": (6,),
        "bn_gamma": (6,),
        "bn_beta": (6,),
        "f_output": (2, 24),
        "bn_moving_mean": (6,),
        "bn_moving_var": (6,),
    }


def test_shapes_flow_backward() -> None:
    a, b = sym.Variable("a"), sym.Variable("b")
    assert named(a + b, b=(2, 3))["a"] == (2, 3)
    chain = sym.Activation(sym.Activation(a, act_type="relu", name="r"), act_type="tanh", name="t") * b
    assert named(chain, b=(4,))["a"] == (4,)


def test_an_unknown_extent_is_filled_in() -> None:
    state = sym.zeros((0, 3), name="state")
    net = sym.Variable("x") + state
    assert named(net, x=(5, 3))["x"] == (5, 3)
    assert net.get_internals().infer_shape(x=(5, 3))[1][1] == (5, 3)
    declared = sym.Variable("y", shape=(0, 3)) + sym.Variable("x")
    assert named(declared, x=(5, 3))["y"] == (5, 3)


def test_each_side_can_know_one_extent() -> None:
    net = sym.Variable("a", shape=(0, 3)) + sym.Variable("b", shape=(5, 0))
    assert named(net) == {"a": (5, 3), "b": (5, 3), net.list_outputs()[0]: (5, 3)}


def test_what_stays_unknown_is_named() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
    with pytest.raises(ShapeError, match=r"cannot be inferred: .*data unknown.*give a shape for data"):
        net.infer_shape()
    with pytest.raises(ShapeError, match=r"data \(4, \?\)"):
        net.infer_shape(data=(4, 0))


def test_partial_inference_gives_zeros() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
    arguments, outputs, auxiliary = net.infer_shape_partial(data=(4, 0))
    assert arguments == [(4, 0), (8, 0), (8,)]
    assert net.infer_shape_partial(data=(4, None))[0] == arguments
    assert outputs == [(4, 8)]
    assert auxiliary == []
    assert net.infer_shape_partial()[0][0] in ((), (0, 0))


def test_positional_shapes_go_by_argument_order() -> None:
    net = sym.Variable("a") + sym.Variable("b")
    assert net.infer_shape((2, 3))[0] == [(2, 3), (2, 3)]
    with pytest.raises(ShapeError, match="3 shapes were given, but there are 2 arguments"):
        net.infer_shape((2,), (2,), (2,))


def test_a_disagreement_shows_operator_producers_and_shapes() -> None:
    left = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="left")
    net = sym.elemwise_add(left, sym.Variable("right"), name="sum")
    with pytest.raises(ShapeError) as raised:
        net.infer_shape(data=(4, 5), right=(4, 7))
    message = str(raised.value)
    assert "elemwise_add 'sum'" in message
    assert "'left_output' (from FullyConnected) of shape (4, 8)" in message
    assert "'right' (a variable) of shape (4, 7)" in message


def test_attributes_that_do_not_fit_shapes_show_the_operator() -> None:
    with pytest.raises(OperatorError) as raised:
        sym.Convolution(
            sym.Variable("data"), kernel=(3,), num_filter=5, num_group=2, name="conv"
        ).infer_shape(data=(1, 4, 9))
    message = str(raised.value)
    assert message.startswith(
        "'conv': Convolution: num_filter=5 is not a multiple of num_group=2\nin Convolution"
    )
    assert "'data' (a variable) of shape (1, 4, 9)" in message


def test_unknown_and_bad_arguments() -> None:
    net = sym.Activation(sym.Variable("data"), act_type="relu")
    with pytest.raises(ShapeError, match="'dta', which is not an argument; did you mean 'data'"):
        net.infer_shape(dta=(4, 5))
    for shape in ((-1, 2), (1.5,), (True,)):
        with pytest.raises(ShapeError, match="extents are integers"):
            net.infer_shape(data=shape)  # type: ignore[arg-type]
    bad = sym.Activation(sym.Variable("x", attr={"__shape__": "[2,"}), act_type="relu")
    with pytest.raises(ShapeError, match=r"__shape__ .* expected a tuple"):
        bad.infer_shape()


def test_a_long_chain_is_inferred_in_both_directions() -> None:
    with NameScope():
        first = body = sym.Variable("x")
        for _ in range(3000):
            body = body + 1
        assert body.infer_shape(x=(2, 3))[1] == [(2, 3)]
        meeting = sym.elemwise_add(body, sym.Variable("y"))
        assert meeting.infer_shape(y=(2, 3))[0] == [(2, 3), (2, 3)]
        assert first.list_arguments() == ["x"]
