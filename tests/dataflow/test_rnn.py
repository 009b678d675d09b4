from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu import GraphError
from tofu.dataflow import sym
from tofu.dataflow.rnn import GRUCell, LSTMCell, SequentialRNNCell
from tofu.dataflow.settings import TIE
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import inference_graph


def test_names_and_shapes_follow_mxnet() -> None:
    outputs, states = LSTMCell(8, prefix="lstm_l0_").unroll(3, sym.Variable("data"), merge_outputs=True)
    assert isinstance(outputs, Symbol)
    assert outputs.list_arguments() == [
        "data", "lstm_l0_i2h_weight", "lstm_l0_i2h_bias", "lstm_l0_h2h_weight", "lstm_l0_h2h_bias",
    ]  # fmt: skip
    arguments, shapes, _ = outputs.infer_shape(data=(2, 3, 5))
    assert arguments == [(2, 3, 5), (32, 5), (32,), (32, 8), (32,)]
    assert shapes == [(2, 3, 8)]
    assert [state.name for state in states] == ["lstm_l0_t2_out", "lstm_l0_t2_state"]
    assert outputs.attr_dict()["lstm_l0_i2h_bias"]["__init__"] == '["lstmbias", {"forget_bias": 1.0}]'


def test_copies_are_tied_across_time_and_not_across_cells() -> None:
    stack = SequentialRNNCell()
    stack.add(LSTMCell(4, prefix="a_"))
    stack.add(LSTMCell(4, prefix="b_"))
    outputs, states = stack.unroll(3, sym.Variable("data"))
    assert isinstance(outputs, list)
    assert len(outputs) == 3
    assert len(states) == 4
    ties = sym.Group(outputs).attr_dict()
    for role in (
        "i2h",
        "h2h",
        "gates",
        "slice",
        "i",
        "f",
        "c",
        "o",
        "kept",
        "admitted",
        "state",
        "tanh",
        "out",
    ):
        assert {ties[f"a_t{time}_{role}"][TIE] for time in range(3)} == {f"a_{role}"}
        assert ties[f"b_t0_{role}"][TIE] == f"b_{role}"


def test_operations_and_stages_carry_the_tie() -> None:
    outputs, _ = LSTMCell(4, prefix="a_").unroll(2, sym.Variable("data"))
    assert isinstance(outputs, list)
    graph = inference_graph(outputs[-1], {"data": (2, 2, 4)})
    first = {o.name.removeprefix("a_t0_"): o.tie for o in graph.operations if o.name.startswith("a_t0_")}
    second = {o.name.removeprefix("a_t1_"): o.tie for o in graph.operations if o.name.startswith("a_t1_")}
    assert None not in second.values()
    assert all(second[role] == tie for role, tie in first.items())


def test_inputs_per_step_time_major_and_a_single_step() -> None:
    steps = [sym.Variable(f"x{time}") for time in range(2)]
    outputs, _ = LSTMCell(4, prefix="a_").unroll(2, steps)
    assert isinstance(outputs, list)
    assert outputs[1].infer_shape(x0=(3, 5), x1=(3, 5))[1] == [(3, 4)]
    merged, _ = LSTMCell(4, prefix="b_").unroll(2, sym.Variable("x"), layout="TNC", merge_outputs=True)
    assert isinstance(merged, Symbol)
    assert merged.infer_shape(x=(2, 3, 5))[1] == [(2, 3, 4)]
    one, _ = LSTMCell(4, prefix="c_").unroll(1, sym.Variable("x"))
    assert isinstance(one, list)
    assert one[0].infer_shape(x=(3, 1, 5))[1] == [(3, 4)]


def test_a_gated_recurrent_unit(evaluate: Callable[..., dict]) -> None:
    outputs, states = GRUCell(4, prefix="gru_").unroll(3, sym.Variable("data"), merge_outputs=True)
    assert isinstance(outputs, Symbol)
    assert [state.name for state in states] == ["gru_t2_out"]
    graph = inference_graph(outputs, {"data": (2, 3, 5)}, dtype="float64")
    generator = np.random.default_rng(3)
    fed = {t.name: generator.standard_normal(t.shape) for t in graph.tensors if t.role.persistent}
    assert {name: value.shape for name, value in fed.items()} == {
        "data": (2, 3, 5),
        "gru_i2h_weight": (12, 5),
        "gru_i2h_bias": (12,),
        "gru_h2h_weight": (12, 4),
        "gru_h2h_bias": (12,),
    }
    state = np.zeros((2, 4))
    expected = []
    for time in range(3):
        new = np.split(fed["data"][:, time] @ fed["gru_i2h_weight"].T + fed["gru_i2h_bias"], 3, axis=1)
        old = np.split(state @ fed["gru_h2h_weight"].T + fed["gru_h2h_bias"], 3, axis=1)
        reset, update = (1 / (1 + np.exp(-(new[gate] + old[gate]))) for gate in (0, 1))
        state = (1 - update) * np.tanh(new[2] + reset * old[2]) + update * state
        expected.append(state)
    found = evaluate(graph, fed)["gru_outputs_output"]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-12)


def test_a_stack_of_different_cells() -> None:
    stack = SequentialRNNCell()
    stack.add(LSTMCell(4, prefix="a_"))
    stack.add(GRUCell(6, prefix="b_"))
    outputs, states = stack.unroll(2, sym.Variable("x"), merge_outputs=True)
    assert isinstance(outputs, Symbol)
    assert outputs.infer_shape(x=(3, 2, 5))[1] == [(3, 2, 6)]
    assert [state.name for state in states] == ["a_t1_out", "a_t1_state", "b_t1_out"]


def test_misuse() -> None:
    cell = LSTMCell(4, prefix="a_")
    with pytest.raises(GraphError, match="1 inputs were given to unroll 2 time steps"):
        cell.unroll(2, [sym.Variable("x")])
    with pytest.raises(GraphError, match="length is 0 "):
        cell.unroll(0, sym.Variable("x"))
    with pytest.raises(GraphError, match="begin_state has 1 states, but the cell has 2"):
        cell.unroll(2, sym.Variable("x"), [sym.Variable("only")])
    with pytest.raises(GraphError, match="layout is 'CTN'"):
        cell.unroll(2, sym.Variable("x"), layout="CTN")
    stack = SequentialRNNCell()
    with pytest.raises(GraphError, match="no cells"):
        stack.unroll(2, sym.Variable("x"))
    stack.add(cell)
    with pytest.raises(GraphError, match="prefix 'a_'"):
        stack.add(LSTMCell(8, prefix="a_"))
    with pytest.raises(GraphError, match="begin_state has 3 states, but the cell has 2"):
        stack.unroll(2, sym.Variable("x"), [sym.Variable(name) for name in "stu"])
