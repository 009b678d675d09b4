"""Recurrent cells: arguments as MXNet 1.9.1 lists them, and the same results however they are built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu.mx as mx

RNG = np.random.default_rng(2)
GATED = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


def of(prefix: str) -> list[str]:
    return [f"{prefix}{name}" for name in GATED]


def outputs(symbol: Any, arrays: dict[str, Any], workers: int = 1) -> np.ndarray:
    context = [mx.cpu(worker) for worker in range(workers)]
    shapes = {name: array.shape for name, array in arrays.items()}
    with symbol.simple_bind(context, "null", **shapes) as executor:
        executor.copy_params_from(arrays)
        found: np.ndarray = executor.forward()[0].asnumpy()
        return found


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def drawn(symbol: Any, **shapes: tuple[int, ...]) -> dict[str, Any]:
    found, _, _ = symbol.infer_shape(**shapes)
    named = zip(symbol.list_arguments(), found, strict=True)
    return {name: mx.nd.array(RNG.normal(size=shape)) for name, shape in named}


def test_arguments_are_those_of_mxnet() -> None:
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(4, prefix="a_"))
    stack.add(mx.rnn.DropoutCell(0.3, prefix="d_"))
    stack.add(mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="b_")))
    stack.add(mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4, prefix="z_"), 0.2, 0.1))
    stack.add(mx.rnn.BidirectionalCell(mx.rnn.GRUCell(2, prefix="l_"), mx.rnn.GRUCell(2, prefix="r_")))
    unrolled, states = stack.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    assert unrolled.list_arguments() == ["data", *of("a_"), *of("b_"), *of("z_"), *of("l_"), *of("r_")]
    assert unrolled.infer_shape(data=(5, 3, 6))[1] == [(5, 3, 4)]
    assert len(states) == len(stack.state_info) == 6


def test_lstm_steps_are_those_of_the_paper() -> None:
    cell = mx.rnn.LSTMCell(4, prefix="l_", forget_bias=0)
    unrolled, _ = cell.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(unrolled, data=(2, 3, 5))
    x, wi, bi, wh, bh = (values[name].asnumpy() for name in ["data", *of("l_")])
    output = memory = np.zeros((2, 4))
    for step in range(3):
        i, f, c, o = np.split(x[:, step] @ wi.T + bi + output @ wh.T + bh, 4, axis=1)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(c)
        output = sigmoid(o) * np.tanh(memory)
        np.testing.assert_allclose(outputs(unrolled, values, 2)[:, step], output, rtol=1e-4, atol=1e-6)


def test_elman_steps() -> None:
    unrolled, _ = mx.rnn.RNNCell(4, activation="relu", prefix="r_").unroll(
        2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True
    )
    values = drawn(unrolled, data=(2, 3, 5))
    x, wi, bi, wh, bh = (values[name].asnumpy() for name in ["data", *of("r_")])
    first = np.maximum(x[0] @ wi.T + bi + bh, 0)
    second = np.maximum(x[1] @ wi.T + bi + first @ wh.T + bh, 0)
    np.testing.assert_allclose(outputs(unrolled, values), [first, second], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_fused_network_is_its_cells(mode: str, bidirectional: bool) -> None:
    fused = mx.rnn.FusedRNNCell(3, num_layers=2, mode=mode, bidirectional=bidirectional, prefix="f_")
    whole, _ = fused.unroll(4, mx.sym.Variable("data"), merge_outputs=True)
    cells, _ = fused.unfuse().unroll(4, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(whole, data=(2, 4, 5))
    unpacked = fused.unpack_weights(values)
    packed = fused.unfuse().pack_weights(unpacked)
    assert set(packed) == set(cells.list_arguments())
    np.testing.assert_allclose(outputs(whole, values), outputs(cells, packed), rtol=1e-4, atol=1e-6)
    again = fused.pack_weights(fused.unfuse().unpack_weights(packed))
    np.testing.assert_array_equal(again["f_parameters"].asnumpy(), values["f_parameters"].asnumpy())


def test_weights_that_fit_no_fused_network() -> None:
    fused = mx.rnn.FusedRNNCell(3, prefix="f_")
    with pytest.raises(mx.MXNetError, match="no array 'f_parameters'; did you mean 'f_parameter'"):
        fused.unpack_weights({"f_parameter": mx.nd.zeros(7)})
    for size in (7, 4 * 3 * (5 + 3 + 2) + 1):
        with pytest.raises(mx.MXNetError, match=f"'f_parameters' has {size} elements, which fit no inputs"):
            fused.unpack_weights({"f_parameters": mx.nd.zeros(size)})
    unpacked = fused.unpack_weights({"f_parameters": mx.nd.zeros(4 * 3 * (5 + 3 + 2))})
    for name in unpacked:
        with pytest.raises(mx.MXNetError, match=f"there is no array '{name}'"):
            fused.pack_weights({key: array for key, array in unpacked.items() if key != name})


def test_residual_and_zoneout_at_rest() -> None:
    """Outside training nothing is dropped: zoneout keeps all of the new values."""
    inner = mx.rnn.RNNCell(5, prefix="r_")
    plain, _ = inner.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    zoneout, _ = mx.rnn.ZoneoutCell(inner, 0.5, 0.5).unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    residual, _ = mx.rnn.ResidualCell(inner).unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(plain, data=(2, 2, 5))
    expected = outputs(plain, values)
    np.testing.assert_allclose(outputs(zoneout, values), expected, rtol=1e-6)
    np.testing.assert_allclose(outputs(residual, values), expected + values["data"].asnumpy(), rtol=1e-6)


def test_inputs_are_added_to_what_both_directions_give() -> None:
    both = mx.rnn.BidirectionalCell(mx.rnn.GRUCell(2, prefix="l_"), mx.rnn.GRUCell(3, prefix="r_"))
    plain, _ = both.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    around = mx.rnn.ResidualCell(both)
    residual, _ = around.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(plain, data=(4, 2, 5))
    expected = outputs(plain, values, 2) + values["data"].asnumpy()
    np.testing.assert_allclose(outputs(residual, values, 2), expected, rtol=1e-6)
    with pytest.raises(mx.MXNetError, match="a BidirectionalCell needs the whole sequence; call unroll"):
        around(mx.sym.Variable("x"), around.begin_state())


def test_a_stack_has_the_variables_of_its_cells() -> None:
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.ResidualCell(mx.rnn.LSTMCell(4, prefix="a_")))
    stack.add(mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="l_"), mx.rnn.RNNCell(2, prefix="r_")))
    assert list(stack.params._params) == [*of("a_"), *of("l_"), *of("r_")]
    with pytest.raises(mx.MXNetError, match=r"have the prefix 'bi_'.* its own output_prefix="):
        stack.add(mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="m_"), mx.rnn.RNNCell(2, prefix="n_")))


@pytest.mark.parametrize("activation", ["tanh", mx.sym.tanh])
def test_a_cell_of_a_script_applies_activations_as_the_cells_here_do(activation: Any) -> None:
    class Cell(mx.rnn.BaseRNNCell):
        def __init__(self) -> None:
            super().__init__("own_")
            self._weight = self.params.get("weight")

        @property
        def state_info(self) -> list[dict[str, Any]]:
            return [{"shape": (0, 4), "__layout__": "NC"}]

        def __call__(self, inputs: Any, states: Any) -> Any:
            total = mx.sym.FullyConnected(inputs, self._weight, num_hidden=4, no_bias=True) + states[0]
            output = self._get_activation(total, activation)
            return output, [output]

    unrolled, _ = Cell().unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(unrolled, data=(2, 2, 3))
    product = values["data"].asnumpy() @ values["own_weight"].asnumpy().T
    first = np.tanh(product[:, 0])
    expected = np.stack([first, np.tanh(product[:, 1] + first)], axis=1)
    np.testing.assert_allclose(outputs(unrolled, values), expected, rtol=1e-5, atol=1e-6)


def test_stepping_through_a_stack_is_unrolling_it() -> None:
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(4, prefix="a_"))
    stack.add(mx.rnn.DropoutCell(0.3, prefix="d_"))
    stack.add(mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="b_")))
    stack.add(mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4, prefix="z_"), zoneout_outputs=0.5))
    words = [mx.sym.Variable(f"t{step}_data") for step in range(3)]
    unrolled, last = stack.unroll(3, words)
    stack.reset()
    states, stepped = stack.begin_state(), []
    for word in words:
        output, states = stack(word, states)
        stepped.append(output)
    assert len(states) == len(last) == len(stack.state_info)
    both = [mx.sym.Group([*stepped, *states]), mx.sym.Group([*unrolled, *last])]
    values = drawn(both[0], **dict.fromkeys(("t0_data", "t1_data", "t2_data"), (2, 4)))
    assert set(both[1].list_arguments()) == set(values)
    for step, whole in zip(*both, strict=True):
        given = {name: values[name] for name in whole.list_arguments()}
        np.testing.assert_allclose(outputs(step, given), outputs(whole, given), rtol=1e-6)
    stack.add(mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="l_"), mx.rnn.RNNCell(2, prefix="r_")))
    with pytest.raises(mx.MXNetError, match="a BidirectionalCell needs the whole sequence; call unroll"):
        stack(words[0], stack.begin_state())


def test_a_modifier_packs_the_weights_of_its_cell() -> None:
    cell = mx.rnn.LSTMCell(4, prefix="r_")
    unrolled, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(unrolled, data=(2, 2, 4))
    around = mx.rnn.ResidualCell(cell)
    unpacked = around.unpack_weights(values)
    assert unpacked["r_i2h_f_weight"].shape == (4, 4)
    for name, array in around.pack_weights(unpacked).items():
        np.testing.assert_array_equal(array.asnumpy(), values[name].asnumpy())


def test_a_fused_network_of_single_steps() -> None:
    fused = mx.rnn.FusedRNNCell(3, num_layers=2, mode="gru", dropout=0.0, prefix="f_")
    whole, _ = fused.unroll(2, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    values = drawn(whole, data=(2, 4, 5))
    steps, _ = fused.unroll(2, merge_outputs=False, input_prefix="in_")
    words = {f"in_t{step}_data": values["data"][step] for step in range(2)}
    given = {**words, "f_parameters": values["f_parameters"]}
    for output, expected in zip(steps, outputs(whole, values), strict=True):
        used = {name: given[name] for name in output.list_arguments()}
        np.testing.assert_allclose(outputs(output, used), expected, rtol=1e-5)


def test_dropout_of_a_fused_network_stands_between_its_cells() -> None:
    stack = mx.rnn.FusedRNNCell(3, num_layers=3, mode="rnn_tanh", dropout=0.5, prefix="f_").unfuse()
    assert [type(cell).__name__ for cell in stack._cells] == ["RNNCell", "DropoutCell"] * 2 + ["RNNCell"]


def test_weights_are_shared_by_params() -> None:
    first = mx.rnn.LSTMCell(4, prefix="a_")
    second = mx.rnn.LSTMCell(4, prefix="b_", params=first.params)
    output, states = first(mx.sym.Variable("x"), first.begin_state())
    output, _ = second(output, states)
    assert output.list_arguments() == ["x", *of("a_")]


def test_states_to_start_from_may_be_variables() -> None:
    cell = mx.rnn.GRUCell(4, prefix="g_")
    output, _ = cell.unroll(1, [mx.sym.Variable("x")], begin_state=cell.begin_state(func=mx.sym.Variable))
    assert output[0].list_arguments() == ["x", "g_i2h_weight", "g_i2h_bias", "g_begin_state_0", *of("g_")[2:]]
    assert cell.state_shape == [(0, 4)]
    steps, _ = cell.unroll(2, input_prefix="in_")
    assert {"in_t0_data", "in_t1_data"} <= set(mx.sym.Group(steps).list_arguments())


def test_every_state_to_start_from_is_given() -> None:
    with pytest.raises(mx.MXNetError, match="begin_state has 1 states, but the cell has 2"):
        mx.rnn.LSTMCell(4).unroll(2, mx.sym.Variable("data"), begin_state=[mx.sym.Variable("first")])


def test_what_cannot_be_built() -> None:
    x = mx.sym.Variable("x")
    with pytest.raises(mx.MXNetError, match="layout is 'NCT', expected 'NTC' or 'TNC'"):
        mx.rnn.RNNCell(4).unroll(2, x, layout="NCT")
    with pytest.raises(mx.MXNetError, match="mode is 'lstn', expected one of rnn_relu"):
        mx.rnn.FusedRNNCell(4, mode="lstn")
    with pytest.raises(mx.MXNetError, match="needs the whole sequence; call unroll, or unfuse"):
        mx.rnn.FusedRNNCell(4)(x, [])
    pair = mx.rnn.BidirectionalCell(mx.rnn.RNNCell(4, prefix="l_"), mx.rnn.RNNCell(4, prefix="r_"))
    with pytest.raises(mx.MXNetError, match="needs the whole sequence"):
        pair(x, [])
    with pytest.raises(mx.MXNetError, match="goes around each cell"):
        mx.rnn.ZoneoutCell(pair, 0.1)
    with pytest.raises(mx.MXNetError, match="both cells have the prefix 'rnn_'"):
        mx.rnn.BidirectionalCell(mx.rnn.RNNCell(4), mx.rnn.RNNCell(4))
    stack = mx.rnn.SequentialRNNCell()
    with pytest.raises(mx.MXNetError, match="no cells"):
        stack.unroll(2, x)
    stack.add(mx.rnn.RNNCell(4))
    with pytest.raises(mx.MXNetError, match="two cells of the stack have the prefix 'rnn_'"):
        stack.add(mx.rnn.RNNCell(4))


def test_sentences_become_numbers_and_batches_of_one_length() -> None:
    numbers, vocabulary = mx.rnn.encode_sentences(
        [["a", "b"], ["b", "c", "a"]], invalid_label=0, start_label=1
    )
    assert numbers == [[1, 2], [2, 3, 1]]
    assert vocabulary == {"\n": 0, "a": 1, "b": 2, "c": 3}
    with pytest.raises(mx.MXNetError, match="the word 'd' is not in the vocabulary"):
        mx.rnn.encode_sentences([["d"]], vocabulary)
    sentences = [[1] * length for length in (2, 2, 3, 3, 4, 9)]
    data = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[2, 4], invalid_label=0)
    assert data.default_bucket_key == 4
    seen = list(data)
    assert sorted(batch.bucket_key for batch in seen) == [2, 4]
    for batch in seen:
        words, following = batch.data[0].asnumpy(), batch.label[0].asnumpy()
        assert words.shape == (2, batch.bucket_key) == batch.provide_data[0].shape
        np.testing.assert_array_equal(following[:, :-1], words[:, 1:])
        np.testing.assert_array_equal(following[:, -1], 0)
    data.reset()
    assert len(list(data)) == 2


def test_sentences_by_time_and_in_buckets_that_are_not_named() -> None:
    sentences = [[1, 2, 3], [4, 5, 6], [7, 8], [9, 10], [11], []]
    data = mx.rnn.BucketSentenceIter(sentences, 2, layout="TN")
    assert data.buckets == [2, 3]
    assert data.provide_data[0].shape == (3, 2)
    seen = {batch.bucket_key: batch for batch in data}
    words, following = seen[3].data[0].asnumpy(), seen[3].label[0].asnumpy()
    assert words.shape == seen[3].provide_label[0].shape == (3, 2)
    assert sorted(words.T.tolist()) == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(following, [*words[1:], [-1, -1]])
    with pytest.raises(mx.MXNetError, match="layout is 'NTC', expected 'NT' or 'TN'"):
        mx.rnn.BucketSentenceIter(sentences, 2, layout="NTC")
    for none in (sentences, []):
        with pytest.raises(mx.MXNetError, match=r"no length has 3 sentences, .*; name the buckets"):
            mx.rnn.BucketSentenceIter(none, 3)


def test_checkpoints_hold_weights_by_gate(tmp_path: Any) -> None:
    cell = mx.rnn.LSTMCell(3, prefix="l_")
    unrolled, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    values = drawn(unrolled, data=(2, 2, 4))
    del values["data"]
    mx.rnn.do_rnn_checkpoint(cell, f"{tmp_path}/net")(0, unrolled, values, {})
    _, stored, _ = mx.model.load_checkpoint(f"{tmp_path}/net", 1)
    assert stored["l_i2h_f_weight"].shape == (3, 4)
    _, packed, _ = mx.rnn.load_rnn_checkpoint(cell, f"{tmp_path}/net", 1)
    for name, array in values.items():
        np.testing.assert_array_equal(packed[name].asnumpy(), array.asnumpy())
