"""Plans whose groups travel together: fewer messages, the same bits, and files that keep the groups."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import tofu
from tofu.dataflow.rewrites.encoders import Cast, Rewrite
from tofu.errors import PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.merging import merge
from tofu.partitioner.methods.autodist.strategy import SyncStrategy
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy, strategy_document
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
