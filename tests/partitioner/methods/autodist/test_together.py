"""Plans whose groups travel together: fewer messages, the same bits, and files that keep the groups."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

import tofu
from tofu.dataflow.rewrites.encoders import Cast, Rewrite
from tofu.errors import PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import all_reduce, ps
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.merging import merge
from tofu.partitioner.methods.autodist.strategy import Server, Synchronisation, SyncStrategy, evenly
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy
from tofu.programs.messages import messages
from tofu.programs.process_messages import messages_of

from ....runtime.test_partitioned_training import single, training
from .test_compiling import require_bits, trained

WORKERS = 4


def together(chunk_size: int = 128) -> tuple[SyncStrategy, Plan]:
    graph = training("perceptron")
    strategy = replace(all_reduce(graph, WORKERS, chunk_size=chunk_size), together=True)
    return strategy, compile_strategy(graph, WORKERS, strategy)


@pytest.mark.parametrize("chunk_size", [2, 128])
def test_groups_travel_together_with_the_same_bits(chunk_size: int) -> None:
    graph = training("perceptron")
    strategy, plan = together(chunk_size)
    apart = lower(graph, compile_strategy(graph, WORKERS, replace(strategy, together=False)))
    found = lower(graph, plan)
    assert found == merge(graph, apart, replace(strategy, together=False)).program
    assert found == merge(graph, found, strategy).program
    assert messages(found, 0).count < messages(apart, 0).count
    require_bits(trained(graph, plan, 2), single("perceptron", 2))


def test_processes_send_fewer_messages() -> None:
    graph = training("perceptron")
    strategy, plan = together()
    apart = compile_strategy(graph, WORKERS, replace(strategy, together=False))
    counts = [len(messages_of(lower(graph, each), range(WORKERS))) for each in (plan, apart)]
    assert counts[0] < counts[1]


def test_groups_of_one_are_left_out() -> None:
    assert together(1)[1].together == ()


def test_encoded_gradients_are_left_where_they_are() -> None:
    graph = training("perceptron")
    variables = {
        name: replace(how, rewrite=Rewrite(Cast("float16")))
        for name, how in all_reduce(graph, 4).variables.items()
    }
    plan = compile_strategy(graph, 4, SyncStrategy(variables, together=True))
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    assert lower(plan.graph, plan).planned_bytes == plan.cost_bytes


def test_plan_files_keep_groups(tmp_path: Path) -> None:
    _, plan = together()
    path = tmp_path / "plan.json"
    plan.save(path)
    graph = training("perceptron")
    loaded = Plan.load(path)
    assert loaded == plan
    assert lower(graph, loaded) == lower(graph, plan)
    first = plan.together[0][0]
    path.write_text(path.read_text().replace(f'"together": [["{first}"', '"together": [["grad(nothing)"'))
    with pytest.raises(PlanError, match=r"'grad\(nothing\)' is to be collected together"):
        lower(graph, Plan.load(path))
    path.write_text(path.read_text().replace('["grad(nothing)"', "[3"))
    with pytest.raises(PlanError, match=r"together\[0\]\[0\]"):
        Plan.load(path)


def test_a_tensor_is_in_one_group() -> None:
    _, plan = together()
    first = plan.together[0][0]
    twice = replace(plan, together=(*plan.together, (first,)))
    said = f"'{re.escape(first)}' is to be collected together with groups 0 and {len(plan.together)} of"
    with pytest.raises(PlanError, match=said):
        twice.check_graph(training("perceptron"))


def test_strategy_files_say_so() -> None:
    graph = training("perceptron")
    strategy, _ = together()
    document = strategy_document(strategy)
    assert document["messages"] == "together"
    assert parse_strategy(document, graph, WORKERS) == strategy
    with pytest.raises(PlanError, match=r"messages is 'merged'.*apart, together"):
        parse_strategy({**document, "messages": "merged"}, graph, WORKERS)
    with pytest.raises(PlanError, match="messages is true"):
        parse_strategy({**document, "messages": True}, graph, WORKERS)


def grouped(strategy: SyncStrategy, group: int | None = 0) -> SyncStrategy:
    """Put all variables of a strategy into one group that travels together."""
    variables = {
        name: replace(how, parts=tuple(replace(part, group=group) for part in how.parts))
        for name, how in strategy.variables.items()
    }
    return replace(strategy, variables=variables, together=True)


def mixture(graph: tofu.Graph) -> SyncStrategy:
    """Variables on two servers, in all-reduces, and half and half."""
    (name, half), *others = all_reduce(graph, WORKERS).variables.items()
    (shape,) = (tensor.shape for tensor in graph.tensors if tensor.name == name)
    cut = evenly(0, shape[0], 2)
    mixed = {name: Synchronisation((Server(1), *half.parts), cut)}
    for number, (other, how) in enumerate(others):
        mixed[other] = Synchronisation((Server(number % 2, True),)) if number % 3 else how
    return SyncStrategy(mixed)


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize("servers", [(0,), (0, 1)])
def test_what_goes_to_one_server_travels_together(servers: tuple[int, ...], proxy: bool) -> None:
    graph = training("perceptron")
    taken = cycle(servers)
    strategy = SyncStrategy(
        {name: Synchronisation((Server(next(taken), proxy),)) for name in ps(graph, WORKERS).variables}
    )
    apart, plan = (compile_strategy(graph, WORKERS, each) for each in (strategy, grouped(strategy)))
    found = lower(graph, plan)
    tofu.verify(graph, plan)
    assert found.planned_bytes == plan.cost_bytes == apart.cost_bytes
    assert sum(each.nbytes for each in messages(found)) == plan.cost_bytes
    assert messages(found, 0).count < messages(lower(graph, apart), 0).count
    # every worker sends each server one message with all gradients, and gets one with all variables
    assert len(messages_of(found, range(WORKERS))) == 2 * (WORKERS - 1) * len(servers)
    require_bits(trained(graph, plan, 2), single("perceptron", 2))


def test_servers_and_all_reduces_share_a_group() -> None:
    graph = training("perceptron")
    strategy = mixture(graph)
    apart, plan = (compile_strategy(graph, WORKERS, each) for each in (strategy, grouped(strategy)))
    found = lower(graph, plan)
    tofu.verify(graph, plan)
    assert found.planned_bytes == plan.cost_bytes == apart.cost_bytes
    assert len(messages_of(found, range(WORKERS))) < len(messages_of(lower(graph, apart), range(WORKERS)))
    require_bits(trained(graph, plan, 2), single("perceptron", 2))


def test_servers_without_a_group_do_not_wait() -> None:
    graph = training("perceptron")
    strategy = ps(graph, WORKERS)
    plan = compile_strategy(graph, WORKERS, replace(strategy, together=True))
    assert plan.together == ()
    assert lower(graph, plan) == lower(graph, compile_strategy(graph, WORKERS, strategy))


def test_files_have_groups_of_servers() -> None:
    graph = training("perceptron")
    strategy = grouped(mixture(graph), 7)
    assert parse_strategy(strategy_document(strategy), graph, WORKERS) == strategy
    for entry, says in (
        ({"sync": "ps", "worker": 1, "group": -1}, "group is -1"),
        ({"sync": False, "worker": 1, "group": 1}, "'group'"),
    ):
        with pytest.raises(PlanError, match=says):
            parse_strategy({"strategy": 1, "variables": {"*": entry}}, graph, WORKERS)


def test_gradients_that_are_applied_as_they_arrive_are_in_no_group() -> None:
    graph = training("perceptron")
    one = Synchronisation((Server(1, by_arrival=True, group=2),))
    strategy = SyncStrategy(dict.fromkeys(all_reduce(graph, WORKERS).variables, one))
    with pytest.raises(PlanError, match="is in group 2, but its gradients are applied as they arrive"):
        compile_strategy(graph, WORKERS, strategy)
