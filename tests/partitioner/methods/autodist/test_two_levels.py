"""Sums in two levels: the same bits, and few bytes between hosts."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow.rewrites.encoders import Cast, PowerSgd, Rewrite
from tofu.errors import PlanError
from tofu.machines.machine import Level, Machine
from tofu.partitioner import Plan, lower
from tofu.partitioner.costs.traffic import traffic
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
from tofu.partitioner.methods.autodist.strategy_file import (
    parse_strategy,
    read_strategy,
    strategy_document,
)

from ....runtime.test_partitioned_training import single, training
from .embedded import embedded
from .recurrences import WEIGHT, Values, learned, planned, recurrence, rounded
from .test_compiling import require_bits, trained

HOSTS = Machine(
    "two hosts of four",
    (Level("host", 1e9), Level("device", 1e10)),
    tuple(f"d{number}" for number in range(8)),
    ((0, 0, 0, 0, 1, 1, 1, 1), tuple(range(8))),
)


def of_all(graph_names: list[str], how: Synchronisation) -> SyncStrategy:
    return SyncStrategy(dict.fromkeys(graph_names, how))


def crossing(plan: Plan) -> int:
    assert plan.graph is not None
    program = lower(plan.graph, plan)
    assert program.planned_bytes == plan.cost_bytes
    return traffic(program, HOSTS).crossing_bytes[0]


def entering(plan: Plan, tensor: str) -> Iterator[list[int]]:
    """Yield, for each hop of all versions of a tensor, the elements that enter each host of four."""
    for version in plan.versions[tensor]:
        for hop in version.hops:
            into = [0, 0]
            for move in hop:
                for holding in (each for term in move.terms for each in term):
                    if holding.worker // 4 != move.target.worker // 4:
                        into[move.target.worker // 4] += prod(b - a for a, b in holding.region)
            yield into


def test_two_hosts_of_four_bring_half_of_a_tensor_into_each_on_each_way() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    flat = all_reduce(graph, 8)
    flat_plan = compile_strategy(graph, 8, flat).of(graph)
    plan = compile_strategy(graph, 8, of_all(list(flat.variables), Synchronisation((AllReduce(hosts=2),))))
    assert plan.cost_bytes == flat_plan.cost_bytes, "as many bytes in all"
    size = 128 * 784
    assert list(entering(flat_plan, "grad(fc1_weight)")) == [[2 * size] * 2] * 2
    assert list(entering(plan, "reduced(grad(fc1_weight))")) == [[0, 0], [size / 2] * 2]
    assert list(entering(plan, "grad(fc1_weight)")) == [[0, 0]]
    assert (
        crossing(plan) * 4
        == crossing(flat_plan)
        == 8 * 4 * sum(prod(t.shape) for t in graph.tensors if t.name in flat.variables)
    )


def test_servers_reached_through_hosts_are_reached_once() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    names = list(all_reduce(graph, 8).variables)
    size = sum(t.nbytes for t in graph.tensors if t.name in names)
    flat = compile_strategy(graph, 8, of_all(names, Synchronisation((Server(1, proxy=True),)))).of(graph)
    plan = compile_strategy(graph, 8, of_all(names, Synchronisation((Server(1, via=(1, 6)),))))
    assert plan.cost_bytes == flat.cost_bytes
    assert (crossing(flat), crossing(plan)) == (2 * 4 * size, 2 * size)


HOWS = {
    "all-reduce": Synchronisation((AllReduce(hosts=2),)),
    "server": Synchronisation((Server(3, via=(1, 2)),)),
    "servers": Synchronisation((Server(3, via=(1, 2)), Server(0, via=(0, 3))), Partition(0, (3,))),
}


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("network", ["perceptron", "convolutional"])
def test_two_levels_train_the_bits_of_one_worker(network: str, how: Synchronisation) -> None:
    graph, steps = training(network), {"perceptron": 2, "convolutional": 1}[network]
    plan = compile_strategy(graph, 4, of_all(list(all_reduce(graph, 4).variables), how))
    assert plan.graph is not None
    found = trained(plan.graph, plan, steps)
    require_bits(found, single(network, steps))


@pytest.mark.parametrize("hosts", [2, 3])
def test_hosts_of_any_size(hosts: int) -> None:
    graph = training("perceptron")
    plan = compile_strategy(
        graph, 6, of_all(list(all_reduce(graph, 6).variables), Synchronisation((AllReduce(hosts=hosts),)))
    )
    assert plan.graph is not None
    require_bits(trained(plan.graph, plan, 1), single("perceptron", 1))


def test_gradients_of_time_steps_are_summed_in_two_levels() -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=2).training_graph()
    plain = all_reduce(graph, 8)
    plan = compile_strategy(graph, 8, of_all(list(plain.variables), Synchronisation((AllReduce(hosts=2),))))
    assert 4 * crossing(plan) == crossing(compile_strategy(graph, 8, plain).of(graph))


@pytest.mark.parametrize("how", [HOWS["all-reduce"], HOWS["server"]])
def test_16_bits_are_rounded_at_each_level(how: Synchronisation) -> None:
    def exchange(local: list[Values]) -> Values:
        stored = [rounded(each, "float16") for each in local]
        within = [rounded(stored[0] + stored[1], "float16"), rounded(stored[2] + stored[3], "float16")]
        return rounded(within[0] + within[1], "float16")

    found = learned(planned(Rewrite(Cast("float16"), 1), 4, how))
    for mine, its in zip(found, recurrence(4, exchange, 1), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert (found[-1] != WEIGHT).all()


def test_plans_with_two_levels_are_saved(tmp_path: Path) -> None:
    graph = training("perceptron")
    for how in HOWS.values():
        plan = compile_strategy(graph, 4, of_all(list(all_reduce(graph, 4).variables), how))
        plan.save(tmp_path / "plan.json")
        read = Plan.load(tmp_path / "plan.json")
        assert read == plan
        read.verify(rewrite(graph, 4, read))


def test_levels_are_written_in_strategy_files() -> None:
    document = {
        "strategy": 1,
        "variables": {
            "fc_weight": {"sync": "ps", "worker": 1, "via": [0, 3]},
            "*": {"sync": "all-reduce", "tree": "two-level", "hosts": 2},
        },
    }
    found = parse_strategy(document, embedded(), 4)
    assert found.variables["fc_weight"].parts == (Server(1, via=(0, 3)),)
    assert found.variables["fc_bias"].parts == (AllReduce(hosts=2),)
    assert parse_strategy(strategy_document(found), embedded(), 4) == found


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{sync: all-reduce, tree: ring}", "tree is 'ring'; there are: flat, two-level"),
        ("{sync: all-reduce, tree: two-level}", "has one of 'tree: two-level' and 'hosts'; write both"),
        ("{sync: all-reduce, hosts: 2}", "has one of 'tree: two-level' and 'hosts'; write both"),
        ("{sync: all-reduce, tree: two-level, hosts: 1}", "hosts is 1; it must lie between 2 and"),
        ("{sync: all-reduce, via: [0, 2]}", "unknown key 'via'"),
        ("{sync: ps, worker: 0, via: [0]}", "via has 1 entries; write a worker for each of two hosts"),
        ("{sync: ps, worker: 0, via: 2}", "via is 2; it must be a list"),
        ("{sync: ps, worker: 0, via: [0, -1]}", "via is -1; it must lie between 0 and"),
    ],
)
def test_hostile_entries_are_refused(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(f'strategy: 1\nvariables: {{"*": {entry}}}')
    with pytest.raises(PlanError, match=message):
        read_strategy(path, embedded(), 4)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Synchronisation((AllReduce(hosts=3),)), "4 workers do not make 3 hosts of several"),
        (Synchronisation((AllReduce(hosts=4),)), "4 workers do not make 4 hosts of several"),
        (Synchronisation((Server(0, via=(0, 1)),)), "via worker 1 in host 1, which has workers 2 to 3"),
        (
            Synchronisation((Server(0, via=(0, 2)), AllReduce()), Partition(0, (2,))),
            "has parts with two levels and others",
        ),
        (
            Synchronisation((AllReduce(), AllReduce(hosts=2)), Partition(0, (2,))),
            "has parts with two levels and others",
        ),
        (
            Synchronisation((AllReduce(hosts=2),), None, Rewrite(PowerSgd(1))),
            "exchanges factors, which are not summed in two levels",
        ),
    ],
)
def test_hosts_that_do_not_fit_are_refused(how: Synchronisation, message: str) -> None:
    graph = embedded()
    strategy = SyncStrategy({**all_reduce(graph, 4).variables, "fc_weight": how})
    with pytest.raises(PlanError, match=message):
        compile_strategy(graph, 4, strategy)
