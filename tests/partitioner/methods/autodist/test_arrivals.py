"""Gradients that are applied in the order in which they arrive: equal to NumPy's recurrence, and replayed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import Optimizer, sgd
from tofu.dataflow.rewrites.arrivals import ARRIVALS, arriving
from tofu.dataflow.rewrites.encoders import Rewrite
from tofu.dataflow.training import training_graph
from tofu.errors import GraphError, PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.rewriting import rewrite
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy
from tofu.runtime.executor import Executor

from .embedded import embedded
from .recurrences import BATCH, INPUTS, OUTPUTS, WEIGHT, Values

MOMENTUM = 0.5
RATE = 2.0**-6
GENERATOR = np.random.default_rng(5)
BATCHES = [
    (
        GENERATOR.integers(-3, 4, (BATCH, INPUTS)).astype(np.float64),
        GENERATOR.integers(-3, 4, (BATCH, OUTPUTS)).astype(np.float64),
    )
    for _ in range(3)
]
"""Small enough for sums without rounding over three iterations."""
WHOLE = Synchronisation((Server(1, by_arrival=True),))
CUT = Synchronisation((Server(1, by_arrival=True), Server(0, by_arrival=True)), Partition(0, (1,)))
ORDERS = {2: [(1, 0), (0, 1), (1, 0)], 4: [(3, 1, 0, 2), (0, 1, 3, 2), (2, 3, 1, 0)]}


def linear(optimizer: Optimizer | str = "sgd", batch: int = BATCH) -> Graph:
    """Return the training graph of one product."""
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=OUTPUTS, no_bias=True, name="fc")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (batch, INPUTS), "label": (batch, OUTPUTS)}
    return training_graph(net, shapes, optimizer, dtype="float64")


def planned(how: Synchronisation, workers: int, method: str | None = None, last: bool = False) -> Plan:
    """Return the plan of a strategy for the weight of the product, on top of the plan of a method."""
    graph = linear(sgd(momentum=MOMENTUM, rescale=1.0))
    base = None if method is None else tofu.partition(graph, workers, method)
    plan = compile_strategy(graph, workers, SyncStrategy({"fc_weight": how}, updates_last=last), base)
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    return plan


def learned(plan: Plan, orders: list[tuple[int, ...]], replicas: int | None = None) -> list[Values]:
    """Return the weight after each iteration, of which each applies gradients in its order."""
    assert plan.graph is not None
    program = lower(plan.graph, plan)
    found = []
    with Executor(program) as executor:
        executor.write("fc_weight", WEIGHT)
        executor.write("pulled(fc_weight)", np.stack([WEIGHT] * (replicas or plan.workers)))
        executor.write("learning_rate", [RATE])
        for (data, label), order in zip(BATCHES, orders, strict=True):
            executor.write("data", data)
            executor.write("label", label)
            executor.write(ARRIVALS, [order])
            executor.run()
            assert executor.fetched_bytes == plan.cost_bytes
            found.append(np.array(executor.read("fc_weight"), np.float64))
    return found


def recurrence(orders: list[tuple[int, ...]]) -> list[Values]:
    """Return the weight after each iteration, from NumPy, with the value that each replica has."""
    workers = len(orders[0])
    weight, momentum, pulled, found = WEIGHT, np.zeros_like(WEIGHT), [WEIGHT] * workers, []
    for (data, label), order in zip(BATCHES, orders, strict=True):
        samples, labels = np.split(data, workers), np.split(label, workers)
        for replica in order:
            x, y = samples[replica], labels[replica]
            gradient = (x @ pulled[replica].T - y).T @ x / OUTPUTS
            momentum = MOMENTUM * momentum - RATE * gradient
            weight = weight + momentum
            pulled[replica] = weight
        found.append(weight)
    return found


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("method", [None, "zero-3"])
@pytest.mark.parametrize("how", [WHOLE, CUT])
@pytest.mark.parametrize("workers", [2, 4])
def test_an_order_that_is_fed_equals_a_recurrence(
    workers: int, how: Synchronisation, method: str | None, last: bool
) -> None:
    plan = planned(how, workers, method, last)
    for mine, its in zip(learned(plan, ORDERS[workers]), recurrence(ORDERS[workers]), strict=True):
        np.testing.assert_array_equal(mine, its)
    other = [order[::-1] for order in ORDERS[workers]]
    assert (learned(plan, other)[-1] != recurrence(ORDERS[workers])[-1]).any(), "the order counts"
    for mine, its in zip(learned(plan, other), recurrence(other), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("how", [WHOLE, CUT])
def test_the_order_of_arrival_is_noted_as_it_happens(how: Synchronisation) -> None:
    plan = planned(how, 4)
    assert plan.graph is not None
    noted, found = [], []
    with Executor(lower(plan.graph, plan), threads=4, note_arrivals=True) as executor:
        executor.write("fc_weight", WEIGHT)
        executor.write("pulled(fc_weight)", np.stack([WEIGHT] * 4))
        executor.write("learning_rate", [RATE])
        for data, label in BATCHES:
            executor.write("data", data)
            executor.write("label", label)
            executor.run()
            noted.append(tuple(executor.read(ARRIVALS)[0].astype(int).tolist()))
            found.append(np.array(executor.read("fc_weight"), np.float64))
    assert all(sorted(order) == [0, 1, 2, 3] for order in noted)
    for mine, its in zip(found, recurrence(noted), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_every_value_moves_as_with_proxies() -> None:
    """Each gradient goes to the server once, and each value once to the replica that pulls it."""
    graph = tofu.models.get("mlp", batch=16).training_graph()
    names = all_reduce(graph, 4).variables
    plan = compile_strategy(graph, 4, SyncStrategy(dict.fromkeys(names, WHOLE)))
    kept = SyncStrategy(dict.fromkeys(names, Synchronisation((Server(1, proxy=True),))))
    assert plan.cost_bytes == compile_strategy(graph, 4, kept).cost_bytes
    rows = arriving(plan.graph or graph)
    assert [row.row for row in rows] == list(range(len(names)))
    assert [len(row.picks) for row in rows] == [4] * len(names)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
def test_models_and_optimizers_have_plans(optimizer: str) -> None:
    for graph in (
        tofu.models.get("lenet", batch=8).training_graph(optimizer),
        tofu.models.get("lstm", batch=4, steps=2, hidden=8, layers=1).training_graph(optimizer),
        embedded(),
    ):
        names = all_reduce(graph, 2).variables
        plan = compile_strategy(graph, 2, SyncStrategy(dict.fromkeys(names, WHOLE)))
        assert plan.graph is not None
        tofu.verify(plan.graph, plan)


def test_blocks_of_samples_run_by_the_given_kernel() -> None:
    """A worker that computes samples of several replicas reads the value of each."""
    plan = planned(WHOLE, 4)
    assert plan.graph is not None
    one = tofu.partition(plan.graph, 1)
    for mine, its in zip(learned(one, ORDERS[4], 4), recurrence(ORDERS[4]), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_plans_keep_that_gradients_arrive(tmp_path: Path) -> None:
    plan = planned(CUT, 4)
    plan.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == plan
    read.verify(rewrite(linear(sgd(momentum=MOMENTUM, rescale=1.0)), 4, read))
    text = (tmp_path / "plan.json").read_text()
    assert '"by_arrival": true' in text
    (tmp_path / "plan.json").write_text(text.replace('"by_arrival": true', '"by_arrival": true, "delay": 1'))
    with pytest.raises(PlanError, match="by_arrival stands next to other entries; leave them out"):
        Plan.load(tmp_path / "plan.json")


def test_strategy_files_say_sync_false() -> None:
    graph = linear()
    entry = {"cut": {"axis": 0, "bounds": [1]}, "sync": False, "workers": [1, 0]}
    found = parse_strategy({"strategy": 1, "variables": {"*": entry}}, graph, 4)
    assert found.variables["fc_weight"] == CUT
    assert parse_strategy(strategy_document(found), graph, 4) == found


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (replace(CUT, parts=(Server(1, by_arrival=True), AllReduce())), "in some parts, and sums them in"),
        (Synchronisation((Server(1, True, by_arrival=True),)), "leave out `proxy` and `via`"),
        (replace(WHOLE, rewrite=Rewrite(delay=1)), "so they are not encoded, not delayed"),
        (replace(WHOLE, factors=True), "not made from factors and not exchanged as rows"),
    ],
)
def test_what_sums_gradients_is_refused(how: Synchronisation, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        compile_strategy(linear(), 4, SyncStrategy({"fc_weight": how}))


def test_what_cannot_be_applied_one_by_one_is_refused() -> None:
    strategy = SyncStrategy({"fc_weight": WHOLE})
    with pytest.raises(PlanError, match="for which all 4 workers must be replicas, but 2 are"):
        compile_strategy(linear(), 4, replace(strategy, replicas=((0, 1),)))
    graph = tofu.models.get("mlp", batch=64).training_graph()
    every, mesh = (
        dict.fromkeys(all_reduce(graph, 4).variables, WHOLE),
        tofu.partition(graph, 4, "megatron:tp4"),
    )
    with pytest.raises(PlanError, match=r"gradients that are applied as they arrive.*the base splits"):
        compile_strategy(graph, 4, SyncStrategy(every), mesh)
    with pytest.raises(GraphError, match="'update_count', which counts iterations rather than gradients"):
        compile_strategy(linear("adamw"), 4, strategy)
    with pytest.raises(GraphError, match="10 samples, which is not a multiple of 4"):
        compile_strategy(linear(batch=10), 4, strategy)
    narrow = tofu.models.get("mlp", batch=8).training_graph(dtype="bfloat16")
    with pytest.raises(GraphError, match="reads 'fc1_weight' for all samples together"):
        compile_strategy(narrow, 2, SyncStrategy(dict.fromkeys(all_reduce(narrow, 2).variables, WHOLE)))
    many = linear(batch=40)
    with pytest.raises(GraphError, match="come from 40 replicas, but at most 32 are applied"):
        compile_strategy(many, 40, strategy)
    with pytest.raises(GraphError, match="neither encoded nor delayed"):
        Rewrite(delay=1, by_arrival=True)
