"""Training over several workers against one, through the real search, lowering and kernels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import Optimizer, adam, sgd
from tofu.dataflow.rnn import LSTMCell
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import training_graph
from tofu.operators.kernels.c_run import CallForm, CCall
from tofu.operators.kernels.kernel import Array
from tofu.operators.native import call_list
from tofu.partitioner import Plan, lower, partition
from tofu.programs.memory import plan_memory
from tofu.programs.program import PartitionedGraph
from tofu.runtime.executor import Executor

WORKERS = range(2, 9)
OPTIMIZERS: dict[str, Optimizer] = {"plain": sgd(momentum=0, rescale=0.25), "sgd": sgd(), "adam": adam()}


def partitioned(graph: Graph, workers: int) -> PartitionedGraph:
    return lower(graph, partition(graph, workers))


def perceptron() -> tuple[Symbol, dict[str, tuple[int, ...]]]:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=18, name="fc1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.FullyConnected(net, num_hidden=8, name="fc2")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    return net, {"data": (16, 11), "label": (16, 8)}


def convolutional() -> tuple[Symbol, dict[str, tuple[int, ...]]]:
    with NameScope():
        net = sym.Convolution(sym.Variable("data"), num_filter=8, kernel=(3, 3), pad=(1, 1), name="conv1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
        net = sym.FullyConnected(sym.Flatten(net, name="flat"), num_hidden=8, name="fc1")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    return net, {"data": (8, 3, 8, 8), "label": (8, 8)}


def recurrent() -> tuple[Symbol, dict[str, tuple[int, ...]]]:
    with NameScope():
        outputs, _ = LSTMCell(12, prefix="lstm_").unroll(4, sym.Variable("data"))
        net = sym.FullyConnected(outputs[-1], num_hidden=8, name="fc1")
        net = sym.SoftmaxOutput(net, name="softmax")
    return net, {"data": (8, 4, 8), "softmax_label": (8,)}


NETWORKS = {"perceptron": perceptron, "convolutional": convolutional, "recurrent": recurrent}


@cache
def training(network: str, optimizer: str = "plain") -> Graph:
    symbol, shapes = NETWORKS[network]()
    return training_graph(symbol, shapes, OPTIMIZERS[optimizer], dtype="float64")


def start_values(graph: Graph) -> Iterator[tuple[str, Array]]:
    """Small integers for everything that is fed or learned; the rate is a power of two."""
    generator = np.random.default_rng(5)
    for tensor in graph.tensors:
        if tensor.role is Role.SCALAR:
            yield tensor.name, np.full(tensor.shape, 2.0**-5)
        elif tensor.role in (Role.DATA, Role.PARAMETER) and tensor.alias is None:
            yield tensor.name, generator.integers(-2, 3, tensor.shape).astype(np.float64)


def train(graph: Graph, workers: int, steps: int, threads: int | None = None) -> dict[str, Array]:
    """Everything learned, and the outputs, after some iterations; bytes moved are checked on the way."""
    program = partitioned(graph, workers)
    with Executor(program, threads=threads) as executor:
        for name, value in start_values(graph):
            executor.write(name, value if "label" not in name else abs(value))
        for _ in range(steps):
            executor.run()
            assert executor.fetched_bytes == program.planned_bytes
        kept = [t for t in graph.tensors if t.role.persistent and t.alias is None]
        kept += [graph.tensors[index] for index in graph.outputs]
        return {tensor.name: executor.read(tensor.name) for tensor in kept}


def require_bits_of_one_worker(network: str, plan: Plan, steps: int) -> None:
    """Train a plan of a network: everything is what one worker learns, and as many bytes move as planned."""
    graph = training(network)
    with Executor(lower(graph, plan)) as executor:
        for name, value in start_values(graph):
            executor.write(name, value if "label" not in name else abs(value))
        for _ in range(steps):
            executor.run()
            assert executor.fetched_bytes == plan.cost_bytes
        for name, value in single(network, steps).items():
            np.testing.assert_array_equal(executor.read(name), value, err_msg=name)


@cache
def single(network: str, steps: int) -> dict[str, Array]:
    return train(training(network), 1, steps)


def require_bits(
    expected: Mapping[str, Array], network: str, steps: int, workers: int, threads: int | None = None
) -> None:
    """Train a network: everything is as expected, bit for bit."""
    for name, value in train(training(network), workers, steps, threads=threads).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("network", "steps"), [("perceptron", 2), ("convolutional", 1)])
def test_integer_valued_training_is_bit_equal(network: str, steps: int, workers: int) -> None:
    """As many steps as every product and sum is exact in 53 bits, so that no order of sums can differ."""
    expected = single(network, steps)
    require_bits(expected, network, steps, workers)
    start = dict(start_values(training(network)))
    learned = [name for name in expected if name.endswith("_weight")]
    assert learned
    assert all((expected[name] != start[name]).any() for name in learned), "nothing was learned"


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("network", "steps"), [("perceptron", 2), ("convolutional", 1)])
def test_integer_valued_training_in_c_is_bit_equal(
    network: str, steps: int, threads: int, request: pytest.FixtureRequest
) -> None:
    expected = single(network, steps)
    request.getfixturevalue("native")
    require_bits(expected, network, steps, workers=4, threads=threads)


Calls = Sequence[tuple[int, CCall]]


def shorter(call: CCall) -> CCall:
    """Return a copy of less: the last byte of a number is its exponent and sign."""
    if call.form is not CallForm.COPY:
        return call
    words = call.words.copy()
    words[2] -= 1
    return replace(call, words=words)


FAULTS: Mapping[str, Callable[[Calls], Calls]] = {
    "the last call is left out": lambda calls: calls[:-1],
    "a call comes too late": lambda calls: (*calls[1:], calls[0]),
    "a copy is a byte short": lambda calls: [(number, shorter(call)) for number, call in calls],
    "bytes are not counted": lambda calls: [each for each in calls if each[1].form is not CallForm.COUNT],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_planted_in_lists_of_calls_are_found(
    fault: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = single("perceptron", 2)
    request.getfixturevalue("native")
    right, plant = call_list.call_list, FAULTS[fault]
    monkeypatch.setattr(call_list, "call_list", lambda calls, *addresses: right(plant(calls), *addresses))
    with pytest.raises(AssertionError):
        require_bits(expected, "perceptron", 2, workers=4)


@pytest.mark.parametrize("workers", WORKERS)
def test_recurrent_training_agrees(workers: int) -> None:
    expected = single("recurrent", 3)
    for name, value in train(training("recurrent"), workers, 3).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_optimizer_states_agree(optimizer: str) -> None:
    graph = training("perceptron", optimizer)
    expected = train(graph, 1, 3)
    assert any(tensor.role is Role.STATE for tensor in graph.tensors)
    for name, value in train(graph, 4, 3).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_runs_are_bit_identical_whatever_the_threads(network: str) -> None:
    graph = training(network)
    first = train(graph, 8, 2, threads=1)
    for threads in (2, 8):
        again = train(graph, 8, 2, threads=threads)
        assert all(first[name].tobytes() == again[name].tobytes() for name in first)


def test_memory_per_worker_shrinks() -> None:
    symbol, _ = perceptron()
    graph = training_graph(symbol, {"data": (256, 128), "label": (256, 8)})
    one, eight = (plan_memory(partitioned(graph, workers)) for workers in (1, 8))
    assert max(eight.arena_bytes) < one.arena_bytes[0] / 3
    for plan in (one, eight):
        assert all(a >= b for a, b in zip(plan.arena_bytes, plan.lower_bound_bytes, strict=True))
