"""Replicas, servers of their own, the order of shares, sums in two levels, sufficient factors."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.programs.program import MultiFetch, Reduce

from ....runtime.test_partitioned_training import single, training
from .test_compiling import cuts, parameter_bytes, parameter_shapes, require_bits, trained

BOXES = ((0, 1, 2, 3), (4, 5, 6, 7))
WEIGHT, BIAS = "fc1_weight", "fc1_bias"


def everywhere(graph: Graph, how: Synchronisation, groups: tuple[tuple[int, ...], ...] = ()) -> SyncStrategy:
    return SyncStrategy(dict.fromkeys(parameter_shapes(graph), how), groups)


def entering(graph: Graph, plan: Plan, tensor: str) -> dict[str, list[int]]:
    """Return the elements of a tensor that enter each box, in sums and in fetches."""
    program = lower(graph, plan)
    found = {"sums": [0, 0], "fetches": [0, 0]}
    for each in program.programs:
        box = each.worker // 4
        for instruction in each.instructions:
            match instruction:
                case MultiFetch(target=target, pieces=pieces):
                    phase = "fetches"
                case Reduce(target=target, parts=parts):
                    phase, pieces = "sums", tuple(piece for part in parts for piece in part)
                case _:
                    continue
            if graph.tensors[each.buffers[target].tensor].name == tensor:
                sizes = [prod(b - a for a, b in p.region) for p in pieces if p.worker // 4 != box]
                found[phase][box] += sum(sizes)
    return found


def mlp() -> Graph:
    return tofu.models.get("mlp", batch=16).training_graph()


@pytest.mark.parametrize("tensor", ["fc1_weight", "fc2_bias"])
def test_two_levels_bring_half_of_a_tensor_into_each_box(tensor: str) -> None:
    graph = mlp()
    size = prod(parameter_shapes(graph)[tensor])
    flat = compile_strategy(graph, 8, everywhere(graph, Synchronisation((AllReduce(),))))
    assert entering(graph, flat, f"grad({tensor})") == {"sums": [2 * size] * 2, "fetches": [2 * size] * 2}
    levels = Synchronisation((AllReduce(two_level=True),))
    plan = compile_strategy(graph, 8, everywhere(graph, levels, BOXES))
    tofu.verify(graph, plan)
    assert entering(graph, plan, f"grad({tensor})") == {"sums": [size / 2] * 2, "fetches": [size / 2] * 2}
    assert plan.cost_bytes == flat.cost_bytes


def test_two_levels_save_time_where_a_link_between_boxes_is_slow() -> None:
    graph, machine = mlp(), tofu.machines.load("2x-p100-node")
    flat, levels = (
        compile_strategy(graph, 8, everywhere(graph, Synchronisation((AllReduce(two_level=two),)), BOXES))
        for two in (False, True)
    )
    seconds = [tofu.simulate(lower(graph, plan), machine).seconds for plan in (flat, levels)]
    assert seconds[1] < seconds[0]


@pytest.mark.parametrize("groups", [((0, 1), (2, 3)), ((0, 2), (3, 1)), ((0,), (1,), (2,), (3,))])
@pytest.mark.parametrize("network", ["perceptron", "convolutional"])
def test_two_levels_train_the_bits_of_one_worker(network: str, groups: tuple[tuple[int, ...], ...]) -> None:
    graph = training(network)
    reduced = everywhere(graph, Synchronisation((AllReduce(two_level=True),)), groups)
    require_bits(trained(graph, compile_strategy(graph, 4, reduced), 1), single(network, 1))
    via = Server(3, via=tuple(group[-1] for group in groups))
    for proxy in (False, True):
        served = everywhere(graph, Synchronisation((replace(via, proxy=proxy),)), groups)
        plan = compile_strategy(graph, 4, served)
        require_bits(trained(graph, plan, 1), single(network, 1))


@settings(max_examples=6)
@given(st.data())
def test_any_mixture_in_two_levels_trains_the_bits_of_one_worker(data: st.DataObject) -> None:
    graph, groups = training("perceptron"), data.draw(st.sampled_from([((0, 1), (2, 3)), ((3, 0), (1, 2))]))
    order = st.permutations(range(4)).map(tuple)
    via = st.tuples(*map(st.sampled_from, groups))
    part = st.builds(AllReduce, order=order, two_level=st.just(True)) | st.builds(
        Server, st.integers(0, 3), st.booleans(), via
    )
    chosen = {}
    for name, shape in parameter_shapes(graph).items():
        found = tuple(c for axis, extent in enumerate(shape) if (c := data.draw(cuts(axis, extent), name)))
        count = prod(len(cut.bounds) + 1 for cut in found)
        parts = data.draw(st.lists(part, min_size=count, max_size=count), name)
        chosen[name] = Synchronisation(tuple(parts), found or None)
    plan = compile_strategy(graph, 4, SyncStrategy(chosen, groups))
    require_bits(trained(graph, plan, 1), single("perceptron", 1))


def test_parts_of_a_variable_go_in_two_levels_each_in_its_way() -> None:
    graph = training("perceptron")
    parts = (AllReduce(two_level=True), Server(3, via=(1, 2)), AllReduce(two_level=True, order=(3, 2, 1, 0)))
    how = {name: Synchronisation(parts, Partition(0, (2, 5))) for name in parameter_shapes(graph)}
    plan = compile_strategy(graph, 4, SyncStrategy(how, ((0, 1), (2, 3))))
    require_bits(trained(graph, plan, 2), single("perceptron", 2))


def test_a_server_in_two_levels_is_reached_by_one_sum_from_each_box() -> None:
    graph = mlp()
    plan = compile_strategy(graph, 8, everywhere(graph, Synchronisation((Server(6, via=(0, 4)),)), BOXES))
    size = prod(parameter_shapes(graph)[WEIGHT])
    assert entering(graph, plan, f"grad({WEIGHT})") == {"sums": [0, size], "fetches": [0, 0]}
    assert entering(graph, plan, WEIGHT) == {"sums": [0, 0], "fetches": [size, 0]}


def test_groups_keep_a_copy_from_which_proxies_are_made() -> None:
    """A weight that all time steps read enters each worker twice, and the other box once."""
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=1).training_graph()
    how = Synchronisation((Server(6, proxy=True, via=(0, 4)),))
    plan = compile_strategy(graph, 8, everywhere(graph, how, BOXES))
    tofu.verify(graph, plan)
    name = next(name for name in parameter_shapes(graph) if "h2h_weight" in name)
    size = prod(parameter_shapes(graph)[name])
    readers = [each for each in graph.operations if name in {graph.tensors[t].name for t in each.inputs}]
    assert len(readers) > 4
    assert entering(graph, plan, name) == {"sums": [0, 0], "fetches": [size, 0]}
    received = sum(each.bytes for each in plan.contributions(graph) if each.tensor == name)
    assert received == 4 * size * (1 + 1 + 3 + 2 + 3 + 2)


def test_shares_are_dealt_in_the_order_that_is_given() -> None:
    graph = mlp()
    plan = compile_strategy(
        graph, 4, everywhere(graph, Synchronisation((AllReduce(order=(2, 0, 3, 1)),)))
    ).of(graph)
    [home] = plan.versions[f"grad({WEIGHT})"]
    lowest = sorted((move.target.region[1][0], move.target.worker) for move in home.hops[0])
    assert [worker for _, worker in lowest] == [2, 0, 3, 1]


def test_workers_that_are_not_replicas_only_serve() -> None:
    graph = training("perceptron")
    strategy = everywhere(graph, Synchronisation((Server(3),)), ((0, 2),))
    plan = compile_strategy(graph, 4, strategy).of(graph)
    require_bits(trained(graph, plan, 2), single("perceptron", 2))
    assert {task.worker for task in plan.tasks["fc1.product"]} == {0, 2}
    assert {task.worker for task in plan.tasks[f"update({WEIGHT})"]} == {3}
    busy = {task.worker for name in plan.tasks if "update" not in name for task in plan.tasks[name]}
    assert busy == {0, 2}


def test_an_all_reduce_is_over_replicas() -> None:
    graph = mlp()
    strategy = everywhere(graph, Synchronisation((AllReduce(),)), ((5, 1, 2),))
    assert compile_strategy(graph, 8, strategy).cost_bytes == 2 * (3 - 1) * parameter_bytes(graph)


def test_some_servers_keep_proxies_and_others_do_not() -> None:
    """The first half of `fc2_weight` is fetched once by each of three workers, the second one twice."""
    graph = mlp()
    half = Partition(0, (32,))
    reduced = everywhere(graph, Synchronisation((AllReduce(),))).variables
    how = Synchronisation((Server(0, proxy=True), Server(1)), half)
    plan = compile_strategy(graph, 4, SyncStrategy({**reduced, "fc2_weight": how}))
    tofu.verify(graph, plan)
    extra = plan.cost_bytes - 2 * 3 * parameter_bytes(graph)
    assert extra == 3 * 32 * 128 * 4


def test_factors_move_instead_of_gradients() -> None:
    """Each of 4 workers fetches three quarters of both factors of `fc1_weight`, and no gradient."""
    graph = tofu.models.get("mlp", batch=16).training_graph()
    reduced = everywhere(graph, Synchronisation((AllReduce(),))).variables
    how = Synchronisation((AllReduce(),), factors=True)
    plan = compile_strategy(graph, 4, SyncStrategy({**reduced, WEIGHT: how}))
    tofu.verify(graph, plan)
    others = parameter_bytes(graph) - 4 * 128 * 784
    assert plan.cost_bytes == 2 * 3 * others + 4 * 12 * (128 + 784) * 4


@pytest.mark.parametrize("part", [AllReduce(), Server(2)])
def test_factors_train_the_bits_of_one_worker(part: AllReduce | Server) -> None:
    graph = training("perceptron")
    how = everywhere(graph, Synchronisation((part,), factors=True))
    require_bits(trained(graph, compile_strategy(graph, 4, how), 2), single("perceptron", 2))


def test_factors_of_all_time_steps_are_fetched() -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=1).training_graph()
    plan = compile_strategy(graph, 2, everywhere(graph, Synchronisation((AllReduce(),), factors=True)))
    tofu.verify(graph, plan)
    gradients = {t.name for t in graph.tensors if t.role is Role.GRADIENT}
    moved = {each.tensor for each in plan.contributions(graph) if each.bytes}
    learned = {f"grad({name})" for name in parameter_shapes(graph)}
    assert learned <= gradients
    assert learned.isdisjoint(moved)


@pytest.mark.parametrize(
    ("how", "groups", "message"),
    [
        ((AllReduce(two_level=True),), (), "all replicas are in one group"),
        ((AllReduce(order=(0, 1, 2)),), (), r"the order \[0, 1, 2\], but the replicas are \[0, 1, 2, 3\]"),
        ((Server(0, via=(0,)),), ((0, 1), (2, 3)), "goes via 1 worker, but the replicas are in 2 groups"),
        ((Server(0, via=(0, 1)),), ((0, 1), (2, 3)), r"via worker 1, which is not in its group \[2, 3\]"),
        ((AllReduce(),), ((0, 1), (1, 2)), "has worker 1 twice"),
        ((AllReduce(),), ((0, 4),), "is on worker 4"),
        ((AllReduce(),), ((0, 1), ()), "a group of replicas has no workers"),
        ((AllReduce(two_level=True),), ((0, 1, 2), (3,)), "makes its 4 terms on other workers than 2 groups"),
    ],
)
def test_what_does_not_fit_is_refused(
    how: tuple[AllReduce | Server, ...], groups: tuple[tuple[int, ...], ...], message: str
) -> None:
    graph = training("perceptron")
    with pytest.raises(PlanError, match=message):
        compile_strategy(graph, 4, everywhere(graph, Synchronisation(how), groups))


def test_a_variable_goes_in_two_levels_as_a_whole() -> None:
    graph = training("perceptron")
    how = Synchronisation((AllReduce(two_level=True), AllReduce()), Partition(0, (4,)))
    with pytest.raises(PlanError, match="in two levels in some parts, and at once in others"):
        compile_strategy(graph, 4, everywhere(graph, how, ((0, 1), (2, 3))))


def test_all_readers_of_a_gradient_read_it_from_their_group() -> None:
    """Batch normalisation reads the gradients of its parameters when it computes that of its data."""
    graph = tofu.models.get("wresnet-10-2", batch=8).training_graph()
    plan = compile_strategy(graph, 8, everywhere(graph, Synchronisation((AllReduce(two_level=True),)), BOXES))
    tofu.verify(graph, plan)
    name = "grad(stage1_unit1_bn1_gamma)"
    readers = {each.name for each in graph.operations if name in {graph.tensors[t].name for t in each.inputs}}
    (copy,) = plan.copies[name]
    assert set(copy.readers) == readers
    assert len(readers) > 1
