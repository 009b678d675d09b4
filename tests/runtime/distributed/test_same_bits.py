"""Several processes have the bits of one, and send the planned bytes, for every kind of plan."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.partitioner.costs.traffic import worker_bytes
from tofu.partitioner.methods.method import every_method
from tofu.programs.program import PartitionedGraph
from tofu.runtime.distributed.processes import Processes
from tofu.runtime.executor import Executor

from .forked import results

ITERATIONS = 3
MIXTURE = """
strategy: 1
variables:
  fc1_weight:
    cut: {axis: 0, bounds: [33]}
    parts:
      - {sync: ps, worker: 1}
      - {sync: all-reduce}
  fc2_weight: {cut: {axis: 1, parts: 3}, sync: ps, workers: [2, 1, 0]}
  fc3_weight: {sync: ps, worker: 2, proxy: true}
  "*_bias": {sync: all-reduce, group: 1}
"""
LSTM = {"layers": 1, "hidden": 16, "steps": 3, "batch": 4}


def values_for(graph: Graph) -> dict[str, Any]:
    """Return the same contents for every lasting tensor of a graph, on every call."""
    found: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.alias is None and tensor.role.persistent:
            seed = int.from_bytes(hashlib.sha256(tensor.name.encode()).digest()[:4], "big")
            random = np.random.default_rng(seed)
            match tensor.role:
                case Role.DATA if tensor.name.endswith("label"):
                    value = random.integers(0, 8, tensor.shape)
                case Role.DATA | Role.PARAMETER:
                    value = random.standard_normal(tensor.shape) * 0.1
                case Role.SCALAR:
                    value = np.full(tensor.shape, 0.01)
                case _:
                    value = np.zeros(tensor.shape)
            found[tensor.name] = value.astype(tensor.dtype)
    return found


def trained(executor: Executor) -> dict[str, bytes]:
    """Return the bits of all that lasts after a few iterations, and of the outputs."""
    graph = executor.partitioned.graph
    with executor:
        for name, value in values_for(graph).items():
            executor.write(name, value)
        for _ in range(ITERATIONS):
            executor.run()
            assert executor.fetched_bytes == executor.partitioned.planned_bytes
        names = [*values_for(graph), *(graph.tensors[output].name for output in graph.outputs)]
        return {name: executor.read(name).tobytes() for name in names}


def check(partitioned: PartitionedGraph, count: int, **settings: Any) -> None:
    """Compare `count` processes with the threads of one."""

    def work(processes: Processes) -> dict[str, bytes]:
        executor = Executor(partitioned, make_engine=processes.engine())
        found = trained(executor)
        places = np.array(processes.places)
        sent = np.zeros((count, count), np.int64)
        np.add.at(sent, (places[:, None], places), worker_bytes(partitioned))
        assert np.array_equal(executor.process_bytes, sent)
        return found

    workers_each = partitioned.workers // count
    expected = trained(Executor(partitioned, threads=2))
    for found in results(count, work, workers_each=workers_each, **settings):
        assert found == expected


@pytest.mark.parametrize(
    ("model", "method", "workers", "count"),
    [
        ("mlp", "recursive", 2, 2),
        ("mlp", "recursive", 3, 3),
        ("mlp", "data-parallel", 4, 4),
        ("mlp", "recursive", 4, 2),
        ("lenet", "recursive", 4, 4),
        ("lenet", "refine", 3, 3),
        ("mlp", "partitioned-ps", 3, 3),
        ("mlp", "all-reduce", 4, 4),
    ],
)
def test_methods(model: str, method: str, workers: int, count: int) -> None:
    graph = tofu.models.get(model, batch=12).training_graph()
    check(tofu.lower(graph, tofu.partition(graph, workers, method)), count)


OTHER_MODELS = {"one-weird-trick": ("lenet", {"batch": 12}), "wu-2016": ("lstm", {**LSTM, "layers": 4})}
"""The models of methods that are not for a perceptron."""

SEARCHED = [name for name in every_method() if name != "manual"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("method", SEARCHED)
def test_every_method(method: str, count: int) -> None:
    model, settings = OTHER_MODELS.get(method, ("mlp", {"batch": 12}))
    graph = tofu.models.get(model, **settings).training_graph()
    check(tofu.lower(graph, tofu.partition(graph, 4, method, machine="dgx-1-v100")), count)


def test_a_recurrent_network() -> None:
    graph = tofu.models.get("lstm", **LSTM).training_graph()
    check(tofu.lower(graph, tofu.partition(graph, 2)), 2)


@pytest.mark.torch
def test_gloo_moves_the_same_bits() -> None:
    pytest.importorskip("torch")
    graph = tofu.models.get("mlp", batch=12).training_graph()
    check(tofu.lower(graph, tofu.partition(graph, 3)), 3, transport="gloo")


def test_a_pipeline_of_micro_batches() -> None:
    graph = tofu.models.get("mlp", batch=12).training_graph(accumulate=3, unroll=True)
    plan = tofu.partition(graph, 3, "place", machine="dgx-1-v100", groups="3x1", memory="unlimited")
    check(tofu.lower(graph, plan), 3)


def test_groups_that_split_what_they_are_given() -> None:
    graph = tofu.models.get("mlp", batch=12).training_graph()
    plan = tofu.partition(graph, 4, "place", machine="dgx-1-v100", groups="2x2", memory="unlimited")
    check(tofu.lower(graph, plan), 4)


def test_a_mixture_of_reductions_and_servers(tmp_path: Path) -> None:
    graph = tofu.models.get("mlp", batch=12).training_graph()
    path = tmp_path / "strategy.yaml"
    path.write_text(MIXTURE)
    check(tofu.lower(graph, tofu.sync.compile(graph, 3, tofu.sync.read(path, graph, 3))), 3)
