"""The CUDA engine beside the NumPy engine, on the same programs, its commands run by the host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.partitioned import PartitionedGraph
from tofu.dataflow.training import training_graph
from tofu.partitioner import lower, partition
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.executor import Executor
from tofu.runtime.schedule import schedule

from .host_machine import HostMachine

Arrays = dict[str, npt.NDArray[Any]]


class Bench:
    """Makes executors whose engine issues its commands to host machines, the newest in `machine`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine: HostMachine

    def executor(
        self,
        partitioned: PartitionedGraph,
        *,
        eager: bool = False,
        machine: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Executor:
        def make(partitioned: Any, memory: Any, watch: Any) -> CudaEngine:
            self.machine = HostMachine(partitioned.workers, self.folder, **(machine or {}))
            plan = schedule(partitioned, memory)
            return CudaEngine(partitioned, memory, plan, self.machine, watch=watch, eager=eager)

        return Executor(partitioned, make_engine=make, **options)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("kernels"))


def over(graph: Graph, workers: int) -> PartitionedGraph:
    return lower(graph, partition(graph, workers=workers))


def start(graph: Graph, seed: int = 0) -> Arrays:
    """Values for all that persists: small whole numbers where they index, multiples of 1/8 elsewhere."""
    rng = np.random.default_rng(seed)
    values: Arrays = {}
    for tensor in graph.tensors:
        if tensor.role.persistent and tensor.alias is None:
            numbers = rng.integers(0, 3, tensor.shape)
            values[tensor.name] = numbers if tensor.role is Role.DATA else numbers / 8 + 0.125
    return values


def learned(executor: Executor, values: Arrays, steps: int = 3) -> Arrays:
    """What persists after so many iterations, and what the graph gives."""
    for name, value in values.items():
        executor.write(name, value)
    for _ in range(steps):
        executor.run()
    graph = executor.partitioned.graph
    outputs = [graph.tensors[index].name for index in graph.outputs]
    return {name: np.array(executor.read(name)) for name in (*values, *outputs)}


def agree(found: Arrays, expected: Arrays, tolerance: float = 2e-5) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        scale = np.abs(values).max(initial=1e-3)
        np.testing.assert_allclose(found[name], values, tolerance, tolerance * scale, err_msg=name)


def residual() -> Graph:
    data = tofu.sym.Variable("data")
    body = tofu.sym.Convolution(
        data, num_filter=4, kernel=(3, 3), pad=(1, 1), stride=(2, 2), no_bias=True, name="conv0"
    )
    body = tofu.sym.BatchNorm(body, name="bn0")
    body = tofu.sym.Activation(body, act_type="relu", name="relu0")
    inner = tofu.sym.Convolution(body, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv1")
    body = tofu.sym.Pooling(inner + body, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool0")
    body = tofu.sym.FullyConnected(tofu.sym.Flatten(body), num_hidden=4, name="fc0")
    network = tofu.sym.SoftmaxOutput(body, name="softmax")
    return training_graph(network, {"data": (4, 2, 8, 8), "softmax_label": (4,)}, "sgd")


def recurrent() -> Graph:
    model = tofu.models.get("lstm", batch=4)
    return model.training_graph()


GRAPHS = {
    "mlp": lambda: tofu.models.get("mlp", batch=8).training_graph("adam"),
    "residual": residual,
}


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_learns_what_the_processor_learns(name: str, workers: int, bench: Bench) -> None:
    graph = GRAPHS[name]()
    partitioned = over(graph, workers)
    values = start(graph)
    with Executor(partitioned) as executor:
        expected = learned(executor, values)
    with bench.executor(partitioned) as executor:
        found = learned(executor, values)
        assert executor.fetched_bytes == partitioned.planned_bytes
    assert bench.machine.intact()
    assert bench.machine.captures == 1
    agree(found, expected)


def test_both_ways_and_all_interleavings_give_the_same_bits(bench: Bench) -> None:
    graph = residual()
    partitioned = over(graph, 4)
    values = start(graph)
    found = []
    for seed in range(4):
        with bench.executor(partitioned, eager=seed % 2 == 1, machine={"seed": seed}) as executor:
            found.append(learned(executor, values))
    for other in found[1:]:
        for name, array in found[0].items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)
