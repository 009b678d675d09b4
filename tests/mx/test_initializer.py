"""Start values by name, by pattern, and by a variable's own initializer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu.mx as mx


def filled(init: Any, name: str, *shape: int, **attrs: str) -> np.ndarray:
    array = mx.nd.full(shape, 9)
    init(mx.init.InitDesc(name, attrs), array)
    return array.asnumpy()


def test_names_decide_what_weights_do_not() -> None:
    rule = mx.init.Normal(2)
    for name, value in (
        ("a_bias", 0),
        ("a_gamma", 1),
        ("a_beta", 0),
        ("a_moving_mean", 0),
        ("a_moving_var", 1),
    ):
        assert (filled(rule, name, 4) == value).all()
    weight = filled(rule, "a_weight", 200, 100)
    assert abs(weight.std() - 2) < 0.05
    with pytest.raises(
        mx.MXNetError, match=r"no initial value for 'state' of shape \(3,\).*init=mx.init.Zero"
    ):
        filled(rule, "state", 3)


@pytest.mark.parametrize(
    ("init", "spread"),
    [
        (mx.init.Uniform(0.3), 0.3 / np.sqrt(3)),
        (mx.init.Xavier(), np.sqrt(3 / 150) / np.sqrt(3)),
        (mx.init.Xavier("gaussian", "in", 2), np.sqrt(2 / 100)),
        (mx.init.Xavier("uniform", "out", 6), np.sqrt(6 / 200) / np.sqrt(3)),
        (mx.init.MSRAPrelu("in", 0.5), np.sqrt(2 / 1.25 / 100)),
    ],
)
def test_spread(init: Any, spread: float) -> None:
    weight = filled(init, "w_weight", 200, 100)
    assert weight.std() == pytest.approx(spread, rel=0.03)
    assert abs(weight.mean()) < 0.05 * spread
    np.testing.assert_array_equal(filled(mx.init.create(init.dumps()), "w_weight", 200, 100), weight)


def test_constants() -> None:
    assert (filled(mx.init.Zero(), "w_weight", 2, 2) == 0).all()
    assert (filled(mx.init.One(), "w_weight", 2, 2) == 1).all()
    assert (filled(mx.init.Constant(2.5), "w_weight", 2, 2) == 2.5).all()
    assert filled(mx.init.LSTMBias(2.0), "l_i2h_bias", 8).tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(4, 6), (6, 2, 2)])
def test_orthogonal(rand_type: str, shape: tuple[int, ...]) -> None:
    weight = filled(mx.init.Orthogonal(1.5, rand_type), "w_weight", *shape).reshape(shape[0], -1)
    small = weight @ weight.T if shape[0] < weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(small, 1.5**2 * np.eye(len(small)), atol=1e-5)


def test_orthogonal_without_rows() -> None:
    assert filled(mx.init.Orthogonal(), "w_weight", 0, 3).shape == (0, 3)


def test_bilinear_weights_interpolate() -> None:
    np.testing.assert_allclose(
        filled(mx.init.Bilinear(), "up_weight", 1, 1, 4, 4)[0, 0],
        np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25]),
    )
    row = filled(mx.init.Bilinear(), "up_weight", 1, 1, 6, 6)[0, 0, 2]
    np.testing.assert_allclose(row, [1 / 3, 2 / 3, 1, 2 / 3, 1 / 3, 0], atol=1e-6)
    with pytest.raises(mx.MXNetError, match=r"'up_weight' has shape \(4,\), but Bilinear needs weights"):
        filled(mx.init.Bilinear(), "up_weight", 4)


def test_a_variable_has_the_last_word() -> None:
    assert (filled(mx.init.Normal(), "a_bias", 3, __init__='["constant", {"value": 4}]') == 4).all()
    with mx.name.NameManager():
        weight = mx.sym.Variable("mine", init=mx.init.Constant(3), shape=(2, 5))
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), weight, no_bias=True, num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (4, 5))], for_training=False)
    module.init_params(mx.init.Uniform())
    assert (module.get_params()[0]["mine"].asnumpy() == 3).all()


def test_mixed_and_load() -> None:
    mixed = mx.init.Mixed(["fc.*bias", ".*"], [mx.init.One(), mx.init.Zero()])
    assert filled(mixed, "fc_weight", 2, 2).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(mx.MXNetError, match="no pattern matches 'fc_weight'"):
        filled(mx.init.Mixed(["x"], [mx.init.One()]), "fc_weight", 2, 2)
    with pytest.raises(mx.MXNetError, match="2 patterns are given for 1 initializers"):
        mx.init.Mixed(["x", "y"], [mx.init.One()])
    load = mx.init.Load({"arg:fc_weight": mx.nd.ones((2, 2))}, mx.init.Zero())
    assert filled(load, "fc_weight", 2, 2).tolist() == [[1, 1], [1, 1]]
    assert filled(load, "other_weight", 2).tolist() == [0, 0]
    with pytest.raises(mx.MXNetError, match=r"'fc_weight' has shape \(3,\), but the loaded array \(2, 2\)"):
        filled(load, "fc_weight", 3)
    with pytest.raises(
        mx.MXNetError, match="'fc_wait' is not among the loaded arrays; did you mean 'fc_weight'"
    ):
        filled(mx.init.Load({"fc_weight": mx.nd.ones(2)}), "fc_wait", 2)


def test_of_ones_own() -> None:
    @mx.init.register
    class Countdown(mx.init.Initializer):
        def _init_weight(self, name: str, arr: Any) -> None:
            arr[:] = np.arange(arr.size)[::-1].reshape(arr.shape)

    own = mx.init.create("countdown")
    assert mx.init.create(own) is own
    assert filled(own, "a_weight", 3).tolist() == [2, 1, 0]
    assert filled(mx.init.Zero(), "a_weight", 3, __init__=Countdown().dumps()).tolist() == [2, 1, 0]


def test_unknown_distributions() -> None:
    with pytest.raises(mx.MXNetError, match="rnd_type is 'normal', expected 'uniform' or 'gaussian'"):
        mx.init.Xavier("normal")
    with pytest.raises(mx.MXNetError, match="rand_type is 'gaussian', expected 'uniform' or 'normal'"):
        mx.init.Orthogonal(1.0, "gaussian")


@pytest.mark.parametrize("text", ["xavierr", '["xavierr", {}]'])
def test_unknown_initializers(text: str) -> None:
    with pytest.raises(mx.MXNetError, match="no initializer 'xavierr'; did you mean 'xavier'"):
        mx.init.create(text)
    with pytest.raises(mx.MXNetError, match="is not an initializer; expected text such as"):
        mx.init.create("[1")


def test_settings_that_an_initializer_does_not_have() -> None:
    for text in ('["zero", 3]', '["zero", "x"]', '["zero"]'):
        with pytest.raises(mx.MXNetError, match="is not an initializer; expected text such as"):
            mx.init.create(text)
    for text, settings in (('["xavier", {"scale": 1}]', {}), ("xavier", {"scale": 1})):
        with pytest.raises(mx.MXNetError, match="'xavier' got an unexpected keyword argument 'scale'"):
            mx.init.create(text, **settings)


def test_start_values_follow_from_seed_and_name() -> None:
    first = filled(mx.init.Uniform(), "a_weight", 3, 4)
    np.testing.assert_array_equal(filled(mx.init.Uniform(), "a_weight", 3, 4), first)
    assert (filled(mx.init.Uniform(), "b_weight", 3, 4) != first).all()
    mx.random.seed(1)
    assert (filled(mx.init.Uniform(), "a_weight", 3, 4) != first).all()


def test_slopes_of_rectifiers_start_at_a_quarter() -> None:
    net = mx.sym.LeakyReLU(mx.sym.Variable("data"), act_type="prelu", name="rectified")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 3))])
    module.init_params(mx.init.Xavier())
    assert module.get_params()[0]["rectified_gamma"].asnumpy().tolist() == [0.25] * 3
    stated = '["Constant", {"value": 0.25}]'
    assert net.attr_dict()["rectified_gamma"]["__init__"] == stated
    assert mx.sym.load_json(net.tojson()).attr_dict()["rectified_gamma"]["__init__"] == stated


def test_arrays_as_constants_are_kept_in_graph_files() -> None:
    for value in (mx.nd.array([[1, 2]]), np.array([[1.0, 2.0]])):
        init = mx.init.Constant(value)
        assert init.dumps() == '["constant", {"value": [[1.0, 2.0]]}]'
        assert filled(mx.init.create(init.dumps()), "a", 1, 2, __init__=init.dumps()).tolist() == [[1, 2]]


@pytest.mark.parametrize("mode", ["rnn_tanh", "lstm", "gru"])
def test_fused_networks_start_as_their_cells(mode: str) -> None:
    cell = mx.rnn.FusedRNNCell(6, num_layers=2, mode=mode, bidirectional=True, forget_bias=2.0, prefix="a_")
    net, _ = cell.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    module = mx.mod.Module(mx.sym.load_json(net.tojson()), label_names=None)
    module.bind([("data", (2, 3, 5))])
    module.init_params(mx.init.Orthogonal(scale=1))
    parts = cell.unpack_weights(module.get_params()[0])
    for name, part in parts.items():
        values = part.asnumpy()
        if name.endswith("weight"):
            small = values if values.shape[0] <= values.shape[1] else values.T
            np.testing.assert_allclose(small @ small.T, np.eye(len(small)), atol=1e-5)
        else:
            assert (values == (2 if name.endswith("_f_bias") else 0)).all()


def test_fused_networks_may_state_how_they_start() -> None:
    cell = mx.rnn.FusedRNNCell(3, mode="gru", prefix="")
    own = mx.init.FusedRNN(mx.init.One(), 3, 1, "gru")
    vector = filled(mx.init.create(own.dumps()), "parameters", 3 * 3 * (4 + 3 + 2), __init__=own.dumps())
    parts = cell.unpack_weights({"parameters": mx.nd.array(vector)})
    assert all((part.asnumpy() == name.endswith("weight")).all() for name, part in parts.items())
