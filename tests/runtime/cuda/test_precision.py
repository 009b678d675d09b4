"""Training in 16 bits compared with float32: by the host, with its own 16-bit types, and on cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import inference_graph, training_graph
from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import Convolution, MatrixProduct
from tofu.runtime import binding
from tofu.runtime.executor import Executor

from .bench import Arrays, Bench, over, same
from .guards import intact
from .host_machine import HostMachine

ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""How far a number is rounded at most, relative to itself."""

STEPS = 3


# Smooth networks: where a rectifier or a maximum turns on a rounded bit, gradients differ by their whole.


def perceptron(dtype: str, grad_scale: float = 1.0, **settings: Any) -> Graph:
    hidden = sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc0")
    scores = sym.FullyConnected(sym.Activation(hidden, act_type="tanh"), num_hidden=4, name="fc1")
    network = sym.SoftmaxOutput(scores, grad_scale=grad_scale, name="softmax")
    shapes = {"data": (8, 12), "softmax_label": (8,)}
    return training_graph(network, shapes, dtype=dtype, **{"optimizer": "sgd", **settings})


def residual(dtype: str) -> Graph:
    data = sym.Variable("data")
    body = sym.Convolution(
        data, num_filter=4, kernel=(3, 3), pad=(1, 1), stride=(2, 2), no_bias=True, name="conv0"
    )
    body = sym.Activation(sym.BatchNorm(body, name="bn0"), act_type="softrelu", name="relu0")
    inner = sym.Convolution(body, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv1")
    body = sym.Pooling(inner + body, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="pool0")
    body = sym.FullyConnected(sym.Flatten(body), num_hidden=4, name="fc0")
    network = sym.SoftmaxOutput(body, name="softmax")
    return training_graph(network, {"data": (4, 2, 8, 8), "softmax_label": (4,)}, dtype=dtype)


def recurrent(dtype: str) -> Graph:
    cell = tofu.rnn.LSTMCell(8, prefix="lstm_")
    words = sym.Embedding(sym.Variable("data"), input_dim=12, output_dim=8, name="embed")
    outputs, _ = cell.unroll(3, words, layout="NTC", merge_outputs=True)
    scores = sym.FullyConnected(sym.Reshape(outputs, shape=(-1, 8)), num_hidden=12, name="pred")
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,))
    network = sym.SoftmaxOutput(scores, label, name="softmax")
    return training_graph(network, {"data": (4, 3), "softmax_label": (4, 3)}, dtype=dtype)


GRAPHS: Mapping[str, Callable[[str], Graph]] = {
    "perceptron": perceptron,
    "residual": residual,
    "recurrent": recurrent,
}


def start(graph: Graph) -> Arrays:
    rng = np.random.default_rng(0)
    words = any(tensor.name == "embed_weight" for tensor in graph.tensors)
    values: Arrays = {}
    for tensor in graph.tensors:
        if not tensor.role.persistent or tensor.alias is not None:
            continue
        if tensor.role is Role.SCALAR:
            values[tensor.name] = np.full(tensor.shape, 0.1)
        elif tensor.role is Role.STATE:
            values[tensor.name] = np.zeros(tensor.shape)
        elif tensor.name == "softmax_label" or (words and tensor.role is Role.DATA):
            values[tensor.name] = rng.integers(0, 4, tensor.shape)
        elif tensor.name in ("bn0_gamma", "bn0_moving_var"):
            values[tensor.name] = np.ones(tensor.shape)
        else:
            values[tensor.name] = rng.normal(scale=0.5, size=tensor.shape).astype(np.float32)
    return values


def learned(executor: Executor, values: Arrays) -> Arrays:
    """Return the tensors that the iterations changed, and by how much."""
    for name, value in values.items():
        executor.write(name, value)
    for _ in range(STEPS):
        executor.run()
    graph = executor.partitioned.graph
    changed = [graph.tensors[t.alias].name for t in graph.tensors if t.alias is not None]
    return {name: executor.read(name) - values[name] for name in changed}


@pytest.mark.parametrize(
    ("name", "dtype", "workers"),
    [
        *((name, "float16", workers) for name in GRAPHS for workers in (1, 4)),
        ("perceptron", "float16", 2),
        ("perceptron", "bfloat16", 2),
    ],
)
def test_learns_what_float32_learns(name: str, dtype: str, workers: int, bench: Bench) -> None:
    """All rounding of a tensor's elements together moves what is learned by a few roundings of one.

    Roundings are independent, so their sum grows as the root of their number; about a hundred tensors lie
    between data and update, and every step starts from the one before.
    """
    wide = GRAPHS[name]("float32")
    values = start(wide)
    with Executor(over(wide, 1)) as executor:
        expected = learned(executor, values)
    with bench.executor(over(GRAPHS[name](dtype), workers)) as executor:
        bench.poison()
        found = learned(executor, values)
        assert executor.fetched_bytes == executor.partitioned.planned_bytes
        assert (executor.fetched_bytes > 0) == (workers > 1)
        assert intact(bench.machine)
    assert found.keys() == expected.keys()
    for tensor, change in expected.items():
        error = np.linalg.norm(found[tensor] - change) / np.linalg.norm(change)
        assert error < 5 * ROUNDOFF[dtype], (tensor, error)
        assert error > 0, "the comparison sees no rounding at all"


def test_both_ways_and_all_interleavings_give_the_same_bits(host: Bench) -> None:
    graph = residual("float16")
    found = []
    for seed in range(4):
        islands = [0, 0, 1, 1] if seed == 2 else None
        with host.executor(over(graph, 4), eager=seed % 2 == 1, seed=seed, islands=islands) as executor:
            found.append(learned(executor, start(graph)))
    for other in found[1:]:
        same(other, found[0])


def test_libraries_compute_every_contraction_in_the_graphs_type(host: Bench) -> None:
    graph = residual("float16")
    with host.executor(over(graph, 2)) as executor:
        learned(executor, start(graph))
    assert isinstance(host.machine, HostMachine)
    issued = [command for commands in host.machine.issued for command in commands]
    products = [command for command in issued if isinstance(command, MatrixProduct)]
    convolutions = [command for command in issued if isinstance(command, Convolution)]
    matrices = {matrix.type for p in products for matrix in (p.left, p.right, p.result)}
    views = {view.type for c in convolutions for view in (c.data, c.weight, c.output)}
    assert matrices == views == {"float16"}
    contractions = sum(operation.bound.factors is not None for operation in graph.operations)
    assert (len(products), len(convolutions)) == (3 * 2 * STEPS, 5 * 2 * STEPS)
    assert contractions == 3 + 5


def test_small_gradients_live_by_the_loss_scale(bench: Bench) -> None:
    """Gradients below 1e-9, less than float16 holds, and an optimizer that takes the steps they are worth."""
    settings = {"grad_scale": 1e-9, "optimizer": sgd(momentum=0, rescale=1e9 / 8)}
    wide = perceptron("float32", **settings)
    values = start(wide)
    with Executor(over(wide, 1)) as executor:
        expected = learned(executor, values)["fc0_weight"]
    changes = []
    for scale in (1.0, 2.0**24):
        with bench.executor(over(perceptron("float16", loss_scale=scale, **settings), 1)) as executor:
            changes.append(learned(executor, values)["fc0_weight"])
    np.testing.assert_array_equal(changes[0], changes[0] * 0, "without a scale nothing is learned")
    assert np.linalg.norm(changes[1] - expected) < 5 * ROUNDOFF["float16"] * np.linalg.norm(expected)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("eager", [False, True])
def test_an_overflow_names_what_it_spoilt_and_the_loss_scale(eager: bool, bench: Bench) -> None:
    graph = perceptron("float16", loss_scale=1e7)
    with bench.executor(over(graph, 2), eager=eager) as executor:
        named = r"worker \d, operation 'update\(\w+\)' \(Compute\), iteration 0: .* lower loss_scale"
        with pytest.raises(ExecutionError, match=named):
            learned(executor, start(graph))
        assert executor.failed


def test_what_lasts_keeps_what_16_bits_would_lose(bench: Bench) -> None:
    """A weight of 1 that learns 1e-5 in every step, of which neither type has a multiple near 1."""
    graph = perceptron("bfloat16", optimizer=sgd(momentum=0))
    with bench.executor(over(graph, 1)) as executor:
        executor.write("fc0_weight", np.full((16, 12), 1 + 2.0**-20))
        np.testing.assert_array_equal(executor.read("fc0_weight"), np.float32(1 + 2.0**-20))
        change = learned(executor, start(graph) | {"learning_rate": np.full(1, 1e-5)})
    assert 0 < np.abs(change["fc0_weight"]).max() < 1e-4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_positions_beyond_what_16_bits_count_are_found(dtype: str, bench: Bench) -> None:
    turned = sym.transpose(sym.Variable("data"), axes=(1, 0))
    rows = sym.Embedding(turned, input_dim=2100, output_dim=3, name="embed")
    graph = inference_graph(rows, {"data": (2, 4)}, dtype=dtype)
    positions = np.array([[2049, 2051, 257, 0], [2099, 2053, 259, 1]])
    weight = np.arange(2100.0)[:, None] % 7 + np.arange(3) / 4
    with bench.executor(over(graph, 2)) as executor:
        executor.write("data", positions)
        executor.write("embed_weight", weight)
        executor.run()
        np.testing.assert_array_equal(executor.read("embed_output"), weight[positions.T])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_whole_tensors_are_read_as_float32(dtype: str, bench: Bench) -> None:
    network = sym.FullyConnected(sym.Variable("data"), num_hidden=4, no_bias=True, name="fc")
    graph = inference_graph(network, {"data": (4, 6)}, dtype=dtype)
    data, weight = np.ones((4, 6)), np.full((4, 6), 1 / 3)
    with bench.executor(over(graph, 2)) as executor:
        executor.write("data", data)
        executor.write("fc_weight", weight)
        executor.run()
        output = executor.read("fc_output")
    assert output.dtype == np.float32
    np.testing.assert_allclose(output, 2, rtol=2 * ROUNDOFF[dtype])
    assert (output.view(np.uint32) & 0xFFF == 0).all(), "more digits than 16 bits have"


def classifier() -> Symbol:
    hidden = sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc0")
    hidden = sym.Activation(hidden, act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=4, name="fc1"), name="softmax")


def test_a_run_goes_on_in_another_type(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "engine_on", lambda devices, **options: bench.maker())
    data = np.random.default_rng(1).standard_normal((32, 12)).astype(np.float32)
    batches = tofu.ArrayIterator(data, data[:, :4].argmax(axis=1), 8)
    accuracies = []
    for epochs, dtype in enumerate(("float16", "bfloat16", "float32"), 1):
        with tofu.Module(classifier(), [tofu.gpu(0)] * 2, dtype=dtype) as trained:
            history = trained.fit(
                batches,
                num_epoch=epochs * 4,
                learning_rate=0.3,
                checkpoint=tmp_path / "run",
                resume=epochs > 1,
            )
            assert {array.dtype for array in trained.parameters().values()} == {np.dtype(np.float32)}
            assert trained.predict(batches).shape == (32, 4)
        accuracies.append(history[-1].training["accuracy"])
    assert len(history) == 12
    assert accuracies[0] > 0.5
    assert accuracies == sorted(accuracies)
