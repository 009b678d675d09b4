"""No strategy takes less than the bound: all of small spaces, random ones, and on devices that differ."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from benchmarks import optimum
from tofu.dataflow.training import inference_graph
from tofu.errors import MachineError
from tofu.machines.machine import Machine
from tofu.partitioner import simulation
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.plans.space import Space
from tofu.simulator import least_step
from tofu.simulator.times import NANOSECONDS, task_times

from ..partitioner.lowering.assignments import MODELS, network
from .boxes import inception
from .test_simulate import MACHINES

UNEQUAL = """
machine: two
kinds:
  fast: {rates: {float32: 4 TFLOP/s}, memory_bandwidth: 400 GB/s, kernel_start: 1 us}
  slow: {rates: {float32: 1 TFLOP/s}, memory_bandwidth: 100 GB/s, kernel_start: 1 us}
levels: [{name: node, bandwidth: 1000 GB/s}]
devices: [{name: a, kind: fast}, {name: b, kind: slow}]
"""


@pytest.fixture
def unequal(tmp_path: Path) -> Machine:
    path = tmp_path / "two.yaml"
    path.write_text(UNEQUAL)
    return tofu.machines.load(str(path))


def random_times(graph: Any, machine: Machine, workers: int, count: int) -> list[float]:
    """Return the times of random strategies."""
    soap = find_soap(graph, workers, sums=True)
    strategies, drawn = Strategies(soap, Space(feed="batch")), drawables(soap.decisions, workers)
    draw = random.Random(workers)
    plans = [strategies.plan(tuple(each.draw(draw) for each in drawn)) for _ in range(count)]
    return [simulation(graph, plan, machine).seconds for plan in plans]


def test_one_worker_takes_the_bound() -> None:
    graph = network("lenet")
    taken = tofu.simulate(tofu.lower(graph, tofu.partition(graph, 1)), "p100-node").seconds
    found = least_step(graph, "p100-node", 1)
    assert found.work_seconds == found.seconds == taken
    assert found.chain_seconds < taken


@pytest.mark.parametrize("model", ["lstm", "lenet"])
def test_no_strategy_of_a_small_space_takes_less(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum, "CHOICES", 4)
    options = {"lstm": {"steps": 2, "layers": 1, "hidden": 1024}, "lenet": {"image": (3, 64, 64)}}[model]
    graph = tofu.models.get(model, batch=256, **options).training_graph()
    best, _ = optimum.Small(graph).optimum()
    found = least_step(graph, optimum.MACHINE, optimum.DEVICES).seconds
    assert 0.25 * best / NANOSECONDS < found <= best / NANOSECONDS


@pytest.mark.parametrize("on", MACHINES)
def test_no_random_strategy_takes_less(on: str) -> None:
    number = list(MACHINES).index(on)
    graph, workers = network(list(MODELS)[number]), 2 + 2 * (number % 2)
    machine = MACHINES[on](workers)
    assert least_step(graph, machine, workers).seconds <= min(random_times(graph, machine, workers, 5))


def test_devices_share_work_by_their_rates(unequal: Machine) -> None:
    graph = tofu.models.get("mlp", batch=4096).training_graph()
    alone = sum(
        int(task_times(graph, unequal, 2)(each, np.array([0]), each.bound.full_box[None])[0])
        for each in graph.operations
    )
    found = least_step(graph, unequal, 2)
    assert 0.75 * alone < found.work_seconds * NANOSECONDS < 0.85 * alone  # 4 of 5 parts
    assert found.seconds <= min(random_times(graph, unequal, 2, 20))


def test_chains_go_through_what_every_task_reads() -> None:
    """Tasks of a concatenation that make one input's part do not wait for the other inputs."""
    data = tofu.sym.Variable("data")
    longer = data
    for number in range(4):
        longer = tofu.sym.Activation(longer, act_type="tanh", name=f"tanh{number}")
    joined = tofu.sym.Concat(longer, data, name="joined")
    after = tofu.sym.Activation(joined, act_type="tanh", name="after")
    graphs = [inference_graph(each, {"data": (64, 64)}) for each in (longer, after)]
    short, whole = [least_step(graph, "p100-node", 2).chain_seconds for graph in graphs]
    assert short > 0
    assert whole == short


def test_convolutions_with_strides_read_less_in_parts() -> None:
    """So not splitting an operation is not always the least work."""
    data = tofu.sym.Variable("data")
    strided = tofu.sym.Convolution(data, num_filter=1, kernel=(1, 1), stride=(8, 8), no_bias=True, name="c")
    graph = inference_graph(strided, {"data": (8, 64, 512, 512)})
    times = task_times(graph, tofu.machines.load("p100-node"), 1)
    whole = sum(int(times(each, np.array([0]), each.bound.full_box[None])[0]) for each in graph.operations)
    assert least_step(graph, "p100-node", 4).work_seconds * 4 < whole / NANOSECONDS


def test_branches_that_meet_are_covered() -> None:
    graph, machine = inception(), tofu.machines.load("k80-node")
    assert least_step(graph, machine, 4).seconds <= min(random_times(graph, machine, 4, 5))


@pytest.mark.parametrize(
    ("workers", "said"), [(0, "0 workers run nothing"), (-1, "use 1 or more"), (5, "has 4")]
)
def test_the_number_of_workers_is_checked(workers: int, said: str) -> None:
    with pytest.raises(MachineError, match=said):
        least_step(network("lenet"), "p100-node", workers)
