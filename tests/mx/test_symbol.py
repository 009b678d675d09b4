"""Symbols with MXNet's methods. Names are compared with those that MXNet 1.9.1 gives."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import tofu.mx as mx
from tofu import sym


def values(symbol: mx.sym.Symbol, **arrays: np.ndarray) -> list[np.ndarray]:
    return [output.asnumpy() for output in symbol.eval(**arrays)]


def test_arithmetic_with_symbols_and_numbers() -> None:
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    made = [
        x + y,
        x * 2,
        2 - x,
        x**2,
        -x,
        x > y,
        x == 2,
        x % 3,
        2 / x,
        x <= 1,
        x != y,
        np.float32(3) + x,
        abs(x),
    ]
    both = mx.sym.Group(made)
    assert [output.name for output in both] == [
        "_plus0",
        "_mulscalar0",
        "_rminusscalar0",
        "_powerscalar0",
        "_mulscalar1",
        "_greater0",
        "_equal_scalar0",
        "_modscalar0",
        "_rdivscalar0",
        "_lesser_equal_scalar0",
        "_not_equal0",
        "_plusscalar0",
        "abs0",
    ]
    a, b = np.array([1.0, 2.0, -3.0], "f4"), np.array([4.0, 1.0, -3.0], "f4")
    expected = [a + b, a * 2, 2 - a, a**2, -a, a > b, a == 2, a % 3, 2 / a, a <= 1, a != b, 3 + a, abs(a)]
    for found, wanted in zip(values(both, x=mx.nd.array(a), y=mx.nd.array(b)), expected, strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted, np.float32), rtol=1e-6)


def test_what_attr_dict_is_for() -> None:
    with pytest.raises(mx.MXNetError, match=r"is attr_dict\(\) since MXNet 0\.9"):
        mx.sym.Variable("x").list_attr(recursive=True)


def test_a_symbol_has_no_truth_value() -> None:
    x = mx.sym.Variable("x")
    with pytest.raises(mx.MXNetError, match="no truth value"):
        assert x == 2
    assert (x == None) is False  # noqa: E711
    assert x in [x]


def test_functions_of_symbols_and_numbers() -> None:
    x = mx.sym.Variable("x")
    a = np.array([1.0, -2.0], "f4")
    both = mx.sym.Group(
        [
            mx.sym.maximum(x, 0),
            mx.sym.maximum(0, x),
            mx.sym.minimum(x, x * 2),
            mx.sym.hypot(x, 2),
            mx.sym.pow(2, x),
            mx.sym.power(x, 2),
            mx.sym.linalg.gemm2(x.reshape((1, 2)), x.reshape((2, 1))).reshape((1,)),
        ]
    )
    expected = [np.maximum(a, 0), np.maximum(a, 0), np.minimum(a, 2 * a), np.hypot(a, 2), 2**a, a**2, [a @ a]]
    for found, wanted in zip(values(both, x=mx.nd.array(a)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert mx.sym.maximum(2, 3) == 3
    assert mx.sym.random.uniform(0, 1, shape=(2, 3)).infer_shape()[1] == [(2, 3)]


def test_operators_are_methods_and_take_attributes_by_position() -> None:
    x = mx.sym.Variable("x")
    a = np.arange(-3, 3, dtype="f4").reshape(2, 3)
    both = mx.sym.Group(
        [x.clip(-1, 1), x.sum(1), mx.sym.transpose(x, (1, 0)), x.reshape((3, 2)), x.flatten()]
    )
    expected = [np.clip(a, -1, 1), a.sum(1), a.T, a.reshape(3, 2), a]
    for found, wanted in zip(values(both, x=mx.nd.array(a)), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(AttributeError, match=r"a symbol has no 'reshap'; did you mean 'reshape'\?"):
        x.reshap((1,))
    with pytest.raises(mx.MXNetError, match="clip: attribute a_min is given by position and by name"):
        mx.sym.clip(x, 0, 1, a_min=2)


def test_tensors_that_no_input_decides() -> None:
    made = mx.sym.Group(
        [mx.sym.zeros((2, 3)), mx.sym.ones(shape=2), mx.sym.full((2,), 1.5), mx.sym.arange(1, 7, 2, repeat=2)]
    )
    assert [output.name for output in made] == ["_zeros0", "_ones0", "_full0", "_arange0"]
    found = values(made)
    np.testing.assert_array_equal(found[0], np.zeros((2, 3)))
    np.testing.assert_array_equal(found[1], [1, 1])
    np.testing.assert_array_equal(found[2], [1.5, 1.5])
    np.testing.assert_array_equal(found[3], [1, 1, 3, 3, 5, 5])


def test_prefixes_and_managers() -> None:
    x = mx.sym.Variable("x")
    with mx.name.Prefix("net_"):
        first = mx.sym.Activation(x, act_type="relu")
        second = mx.sym.Activation(first, act_type="relu", name="act")
        third = mx.sym.FullyConnected(second, num_hidden=2, name="fc")
        assert mx.name.NameManager.current.get(None, "thing") == "net_thing0"

    class Shouting(mx.name.NameManager):
        def get(self, name: str | None, hint: str) -> str:
            return super().get(name, hint).upper()

    with Shouting():
        fourth = mx.sym.Flatten(third)
    assert fourth.get_internals().list_outputs() == [
        "x",
        "net_activation0_output",
        "net_act_output",
        "net_fc_weight",
        "net_fc_bias",
        "net_fc_output",
        "FLATTEN0_output",
    ]


def test_settings_by_scope() -> None:
    with mx.AttrScope(ctx_group="stage1"):
        assert mx.AttrScope.current.get({"a": "b"}) == {"ctx_group": "stage1", "a": "b"}
        made = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    assert made.attr("ctx_group") == "stage1"
    assert made.list_attr() == {"num_hidden": "3", "__ctx_group__": "stage1", "ctx_group": "stage1"}
    assert made.attr_dict()["fc_weight"]["ctx_group"] == "stage1"


def test_parts_are_symbols_of_the_same_kind() -> None:
    net = mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=2, name="cut")
    parts = [
        net[0],
        net["cut_output1"],
        *net,
        net.get_internals(),
        net.get_children(),
        net(mx.sym.Variable("y")),
    ]
    assert all(type(part) is mx.sym.Symbol for part in parts)
    assert mx.sym.Variable("x").get_children() is None
    assert net[1].name == "cut"
    assert type(copy.deepcopy(net)) is mx.sym.Symbol
    restored = pickle.loads(pickle.dumps(net))
    assert type(restored) is mx.sym.Symbol
    assert restored.list_outputs() == net.list_outputs()
    assert "SliceChannel:cut\n  x" in net.debug_str()


def test_symbols_of_both_kinds_mix() -> None:
    mixed = mx.sym.Group([sym.Variable("x") + 1, mx.sym.Variable("y")])
    assert type(mixed) is mx.sym.Symbol
    assert type(mx.sym.relu(sym.Variable("x"))) is mx.sym.Symbol


def test_several_outputs_are_named_as_in_mxnet() -> None:
    several = mx.sym.BatchNorm(mx.sym.Variable("x"), output_mean_var=True, name="bn")
    assert several.list_outputs() == ["bn_output", "bn_mean", "bn_var"]
    assert mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn2").list_outputs() == ["bn2_output"]


def test_files_in_both_dialects(tmp_path: pytest.TempPathFactory) -> None:
    x = mx.sym.Variable("x", shape=(2, 3), init=mx.init.One(), lr_mult=2)
    net = mx.sym.Dropout(x * mx.sym.Variable("y") / 2, p=0.3, name="drop")
    path = f"{tmp_path}/net-symbol.json"
    net.save(path)
    old, new = json.loads(net.tojson()), json.loads(net.tojson(dialect="1.x"))
    assert [node["op"] for node in old["nodes"]] == ["null", "null", "_mul", "_div_scalar", "Dropout"]
    assert [node["op"] for node in new["nodes"]] == ["null", "null", "elemwise_mul", "_div_scalar", "Dropout"]
    assert old["nodes"][-1]["attr"] == new["nodes"][-1]["attrs"] == {"p": "0.3"}
    assert (old["attrs"]["mxnet_version"], new["attrs"]["mxnet_version"]) == (["int", 1100], ["int", 10901])
    for loaded in (mx.sym.load(path), mx.sym.load_json(json.dumps(new)), mx.sym.fromjson(net.tojson())):
        assert type(loaded) is mx.sym.Symbol
        assert loaded.tojson() == net.tojson()
        assert loaded.infer_shape()[0] == [(2, 3), (2, 3)]
    with pytest.raises(mx.MXNetError, match=r"no dialect '2'; known are 0.11, 1.x"):
        net.tojson(dialect="2")


def test_attributes_of_numpy_are_written_as_numbers() -> None:
    x = mx.sym.Variable("x")
    made = mx.sym.Pooling(mx.sym.Cast(x, dtype=np.float16), kernel=tuple(np.array([2, 2])), pool_type="max")
    assert made.list_attr()["kernel"] == "(2, 2)"
    assert made.get_internals()["cast0_output"].attr("dtype") == "float16"


def test_incomplete_shapes_are_named() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    with pytest.raises(
        mx.MXNetError, match=r"cannot be inferred: data unknown, fc_weight \(3, \?\).* give a shape for data"
    ):
        net.infer_shape()
    assert net.infer_shape_partial()[0] == [(), (3, 0), (3,)]


def test_flags_may_be_text_in_small_letters() -> None:
    for text, expected in (("true", ["data", "fc_weight"]), ("False", ["data", "fc_weight", "fc_bias"])):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, no_bias=text, name="fc")
        assert net.list_arguments() == expected
    with pytest.raises(mx.MXNetError, match="attribute no_bias is 'yes', expected True or False"):
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, no_bias="yes", name="fc2")


def test_children_of_several_outputs_of_one_node_are_listed_once() -> None:
    parts = mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=2, name="parts")
    assert parts.get_children().list_outputs() == ["x"]
    assert mx.sym.Group([parts[1], mx.sym.Variable("y"), parts[0]]).get_children().list_outputs() == ["x"]
    assert (parts[0] + parts[1]).get_children().list_outputs() == ["parts_output0", "parts_output1"]


@pytest.mark.parametrize("name", ["Concat", "stack", "add_n"])
def test_a_file_may_leave_the_number_of_inputs_to_be_counted(name: str) -> None:
    net = getattr(mx.sym, name)(mx.sym.Variable("a"), mx.sym.Variable("b"), name="joined")
    graph = json.loads(net.tojson())
    assert graph["nodes"][-1]["attr"].pop("num_args") == "2"
    assert mx.sym.load_json(json.dumps(graph)).tojson() == net.tojson()
