"""Plans of strategies: they train as one worker does, and move what formulas say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import (
    BUILDERS,
    all_reduce,
    partitioned_ps,
    ps,
    ps_load_balancing,
)
from tofu.partitioner.methods.autodist.checks import PARTS_LIMIT
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.shares import shares
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)
from tofu.runtime.executor import Executor

from ....runtime.test_partitioned_training import single, start_values, training
from .embedded import BATCH, ROWS, embedded

STEPS = {"perceptron": 2, "convolutional": 1}
"""Iterations in which every product and sum is exact."""


def trained(graph: Graph, plan: Plan, steps: int) -> dict[str, Array]:
    """Return all that is learned and the outputs; bytes moved are checked on the way."""
    tofu.verify(graph, plan)
    program = lower(graph, plan)
    assert program.planned_bytes == plan.cost_bytes
    with Executor(program, threads=1) as executor:
        for name, value in start_values(graph):
            executor.write(name, value if "label" not in name else abs(value))
        if any(tensor.name == "table_weight" for tensor in graph.tensors):
            executor.write("data", np.arange(BATCH) * 5.0 % ROWS)
        for _ in range(steps):
            executor.run()
            assert executor.fetched_bytes == program.planned_bytes
        kept = [t for t in graph.tensors if t.role.persistent and t.alias is None]
        kept += [graph.tensors[index] for index in graph.outputs]
        return {tensor.name: executor.read(tensor.name) for tensor in kept}


def require_bits(found: dict[str, Array], expected: dict[str, Array]) -> None:
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def parameter_bytes(graph: Graph) -> int:
    return sum(t.nbytes for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None)


@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("network", STEPS)
def test_builders_train_the_bits_of_one_worker(network: str, builder: str, workers: int) -> None:
    graph, steps = training(network), STEPS[network]
    plan = tofu.partition(graph, workers, builder)
    assert plan.method == builder
    require_bits(trained(graph, plan, steps), single(network, steps))


@pytest.mark.parametrize("builder", ["ps-load-balancing", "uneven-partitioned-ps"])
def test_proxies_train_the_bits_of_one_worker(builder: str) -> None:
    graph = training("perceptron")
    plan = compile_strategy(graph, 4, BUILDERS[builder](graph, 4, proxy=True))
    require_bits(trained(graph, plan, 2), single("perceptron", 2))


@cache
def of_one_worker() -> dict[str, Array]:
    graph = embedded()
    return trained(graph, tofu.partition(graph, 1), 1)


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_table_trains_the_bits_of_one_worker(builder: str) -> None:
    graph = embedded()
    require_bits(trained(graph, tofu.partition(graph, 4, builder), 1), of_one_worker())


@st.composite
def cuts(draw: st.DrawFn, axis: int, extent: int) -> Partition | None:
    """Any bounds along a dimension, or none."""
    bounds = tuple(sorted(draw(st.sets(st.integers(1, extent - 1), max_size=3))))
    return Partition(axis, bounds) if bounds else None


@st.composite
def synchronisations(draw: st.DrawFn, shape: tuple[int, ...], workers: int) -> Synchronisation:
    """Any parts along any dimensions, each with any synchroniser."""
    found = tuple(cut for axis, extent in enumerate(shape) if (cut := draw(cuts(axis, extent))))
    server = st.builds(Server, st.integers(0, workers - 1), st.booleans())
    reduced = st.builds(AllReduce, order=st.permutations(range(workers)).map(tuple))
    count = prod(len(cut.bounds) + 1 for cut in found)
    parts = draw(st.lists(server | reduced, min_size=count, max_size=count))
    return Synchronisation(tuple(parts), found or None, factors=draw(st.booleans()))


def parameter_shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {t.name: t.shape for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None}


@settings(max_examples=25)
@given(st.data(), st.integers(2, 5))
def test_any_mixture_trains_the_bits_of_one_worker(data: st.DataObject, workers: int) -> None:
    graph = training("perceptron")
    shapes = parameter_shapes(graph)
    chosen = {name: data.draw(synchronisations(shape, workers), name) for name, shape in shapes.items()}
    plan = compile_strategy(graph, workers, SyncStrategy(chosen))
    require_bits(trained(graph, plan, 1), single("perceptron", 1))


@pytest.mark.parametrize("model", ["mlp", "lenet"])
@pytest.mark.parametrize("workers", [2, 3, 4, 8])
def test_all_reduce_moves_gradients_in_two_hops(model: str, workers: int) -> None:
    graph = tofu.models.get(model, batch=16).training_graph()
    strategy = all_reduce(graph, workers)
    plan = compile_strategy(graph, workers, strategy)
    [share] = shares(graph, plan, strategy)
    assert share.gradient_bytes == plan.cost_bytes == 2 * (workers - 1) * parameter_bytes(graph)


def test_gradients_of_time_steps_are_reduced_once() -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=2).training_graph()
    strategy = all_reduce(graph, 4)
    [share] = shares(graph, compile_strategy(graph, 4, strategy), strategy)
    assert share.gradient_bytes == 2 * 3 * parameter_bytes(graph)


def test_every_worker_sends_and_receives_its_share_of_an_all_reduce() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    gradients = {t.name for t in graph.tensors if t.role is Role.GRADIENT and t.name.endswith("_weight)")}
    plan = compile_strategy(graph, 4, all_reduce(graph, 4)).of(graph)
    for name in gradients:
        [version] = plan.versions[name]
        reduced = [move.target for move in version.hops[0]]
        sizes = [prod(upper - lower for lower, upper in holding.region) for holding in reduced]
        assert sorted(holding.worker for holding in reduced) == [0, 1, 2, 3]
        assert len(set(sizes)) == 1


def test_a_proxy_leaves_no_repeated_fetch() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    moved = {
        proxy: compile_strategy(graph, 4, ps_load_balancing(graph, 4, proxy=proxy)).cost_bytes
        for proxy in (False, True)
    }
    read_twice = sum(t.nbytes for t in graph.tensors if t.name in ("fc2_weight", "fc3_weight"))
    assert moved[True] == 2 * 3 * parameter_bytes(graph)
    assert moved[False] == moved[True] + 3 * read_twice


@pytest.mark.parametrize("last", [False, True])
def test_a_count_of_updates_is_kept_by_every_worker(last: bool) -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph("adamw", dtype="float64")
    strategy = replace(partitioned_ps(graph, 4), updates_last=last)
    plan = compile_strategy(graph, 4, strategy)
    counted = plan.of(graph)
    assert {task.worker for task in counted.tasks["update(update_count)"]} == {0, 1, 2, 3}
    expected = trained(graph, tofu.partition(graph, 1), 2)
    for name, value in trained(graph, plan, 2).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("optimizer", ["adamw", tofu.optimizer.adam(epsilon_mode="torch")])
def test_a_count_of_updates_is_not_cut_with_the_only_variable(
    optimizer: str | tofu.optimizer.Optimizer,
) -> None:
    net = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=8, no_bias=True, name="fc")
    net = tofu.sym.LinearRegressionOutput(net, tofu.sym.Variable("label"))
    graph = tofu.training_graph(net, {"data": (8, 6), "label": (8, 8)}, optimizer, dtype="float64")
    expected = trained(graph, tofu.partition(graph, 1), 2)
    for name, value in trained(graph, compile_strategy(graph, 4, partitioned_ps(graph, 4)), 2).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-9, err_msg=name)


def test_servers_hold_the_state_and_update_alone() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph("adam")
    plan = compile_strategy(graph, 4, ps(graph, 4)).of(graph)
    assert {task.worker for task in plan.tasks["update(fc1_weight)"]} == {0}
    for name in ("fc1_weight", "mean(fc1_weight)", "var(fc1_weight)", "grad(fc1_weight)"):
        assert {holding.worker for holding in plan.versions[name][0].holdings} == {0}


def test_accumulated_gradients_are_where_their_variable_is() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph(accumulate=2)
    plan = compile_strategy(graph, 2, ps(graph, 2))
    tofu.verify(graph, plan)
    holdings = plan.of(graph).versions["total(grad(fc1_weight))"][0].holdings
    assert {holding.worker for holding in holdings} == {0}


def changed(name: str, how: Synchronisation) -> SyncStrategy:
    graph = training("perceptron")
    return SyncStrategy({**all_reduce(graph, 2).variables, name: how})


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (changed("fc9_weight", Synchronisation((AllReduce(),))), "updates no variable 'fc9_weight'"),
        (SyncStrategy({}), "variable 'fc1_weight' has no synchronisation"),
        (changed("fc1_bias", Synchronisation((Server(2),))), "'fc1_bias' is on worker 2.* 0 to 1"),
        (
            changed("fc1_bias", Synchronisation((AllReduce(),) * 2, Partition(1, (2,)))),
            "'fc1_bias' has no dimension 1",
        ),
        (
            changed("fc1_bias", Synchronisation((AllReduce(),) * 2, Partition(0, (18,)))),
            r"'fc1_bias': the bounds \[18\] do not cut dimension 0 of 18",
        ),
        (
            changed("fc1_bias", Synchronisation((AllReduce(),), Partition(0, (4,)))),
            "'fc1_bias' has 2 parts, but 1 sync",
        ),
        (
            changed(
                "fc1_bias",
                Synchronisation((AllReduce(),) * (PARTS_LIMIT + 1), evenly(0, 9999, PARTS_LIMIT + 1)),
            ),
            "'fc1_bias' has 1,025 parts, but at most 1,024",
        ),
        ("ps", "takes a tofu.sync.Strategy, not a str"),
    ],
)
def test_what_cannot_be_expressed_is_refused(strategy: SyncStrategy, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        compile_strategy(training("perceptron"), 2, strategy)


def test_too_few_samples_are_refused() -> None:
    graph = tofu.models.get("mlp", batch=2).training_graph()
    with pytest.raises(PlanError, match="split over 4 workers, but it has 2; choose a larger batch"):
        compile_strategy(graph, 4, all_reduce(graph, 4))
