"""Parts of one variable by a server and by an all-reduce, encoded and delayed each in its own way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow.rewrites.encoders import NO_REWRITE, Cast, PowerSgd, Rewrite
from tofu.errors import GraphError, PlanError
from tofu.partitioner import Plan
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.rewriting import rewrite
from tofu.partitioner.methods.autodist.shares import shares
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy

from .embedded import embedded
from .recurrences import BATCHES, INPUTS, OUTPUTS, RATE, WEIGHT, Values, learned, linear, rounded

HALVES = Partition(1, (2,))


def planned(how: Synchronisation, workers: int = 4) -> Plan:
    return compile_strategy(linear(), workers, SyncStrategy({"fc_weight": how}))


def both(first: Rewrite, second: Rewrite) -> Synchronisation:
    return Synchronisation((Server(2), AllReduce()), HALVES, part_rewrites=(first, second))


def expected() -> list[Values]:
    """Return what is learned if columns 0 and 1 are late, and the others in bfloat16 with feedback."""
    weight, waiting, found = WEIGHT, np.zeros((OUTPUTS, 2)), []
    errors = [np.zeros((OUTPUTS, INPUTS - 2))] * 4
    for data, label in BATCHES:
        local = [
            (x @ weight.T - y).T @ x / OUTPUTS
            for x, y in zip(np.split(data, 4), np.split(label, 4), strict=True)
        ]
        corrected = [each[:, 2:] + error for each, error in zip(local, errors, strict=True)]
        stored = [rounded(each, "bfloat16") for each in corrected]
        errors = [a - b for a, b in zip(corrected, stored, strict=True)]
        now = np.sum(local, axis=0)[:, :2]
        gradient = np.concatenate([waiting, rounded(np.sum(stored, axis=0), "bfloat16")], axis=1)
        weight, waiting = weight - RATE * gradient, now
        found.append(weight)
    return found


def test_parts_equal_a_recurrence() -> None:
    plan = planned(both(Rewrite(delay=1), Rewrite(Cast("bfloat16", True))))
    for mine, its in zip(learned(plan), expected(), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_parts_are_held_by_their_holders() -> None:
    plan = planned(both(Rewrite(delay=2), Rewrite(Cast("float16"))))
    for name in ("grad(fc_weight)[0:2]", "delayed_1(fc_weight[0:2])", "delayed_2(fc_weight[0:2])"):
        assert {holding.worker for holding in plan.versions[name][0].holdings} == {2}
    assert {holding.worker for holding in plan.versions["grad(fc_weight)[2:6]"][0].holdings} == {0, 1, 2, 3}


def test_each_part_moves_its_own_bytes() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    how = Synchronisation(
        (AllReduce(), Server(1, proxy=True)),
        evenly(0, 128, 2),
        part_rewrites=(Rewrite(Cast("bfloat16")), NO_REWRITE),
    )
    plain = all_reduce(graph, 4)
    strategy = SyncStrategy({**plain.variables, "fc1_weight": how})
    plan = compile_strategy(graph, 4, strategy)
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    spared = compile_strategy(graph, 4, plain).cost_bytes - plan.cost_bytes
    assert spared == 2 * 3 * 2 * 64 * 784, "two of four bytes, on both ways, of half of the variable"
    found = shares(plan.graph, plan, strategy, graph)
    assert sum(each.gradient_bytes + each.fetched_bytes for each in found) == plan.cost_bytes


def test_factors_of_a_part() -> None:
    plan = planned(both(NO_REWRITE, Rewrite(PowerSgd(1), 1)))
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    assert (learned(plan)[-1] != WEIGHT).any()


def test_plans_and_files_keep_them(tmp_path: Path) -> None:
    plan = planned(both(Rewrite(delay=1), Rewrite(Cast("bfloat16", True))))
    plan.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == plan
    read.verify(rewrite(linear(), 4, read))
    document = {
        "strategy": 1,
        "variables": {
            "fc_weight": {
                "cut": {"axis": 0, "bounds": [3]},
                "parts": [
                    {"sync": "ps", "worker": 1, "delay": 1},
                    {"sync": "all-reduce", "encode": {"type": "bfloat16", "feedback": True}},
                ],
            },
            "*": {"sync": "all-reduce"},
        },
    }
    found = parse_strategy(document, embedded(), 4)
    assert found.variables["fc_weight"].part_rewrites == (Rewrite(delay=1), Rewrite(Cast("bfloat16", True)))
    assert parse_strategy(strategy_document(found), embedded(), 4) == found


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="has 2 parts of 1 cuts, but 1 rewrites of parts"):
        planned(Synchronisation((Server(2), AllReduce()), HALVES, part_rewrites=(NO_REWRITE,)))
    with pytest.raises(PlanError, match="so the whole has no encoder"):
        planned(
            Synchronisation(
                (Server(2), AllReduce()), HALVES, Rewrite(delay=1), (Rewrite(delay=1), NO_REWRITE)
            )
        )
    graph = tofu.models.get("mlp", batch=16).training_graph()
    many = Synchronisation((AllReduce(),) * 32, evenly(0, 128, 32), part_rewrites=(Rewrite(delay=1),) * 32)
    with pytest.raises(GraphError, match="32 parts with rewrites, but at most 16"):
        compile_strategy(graph, 4, SyncStrategy({**all_reduce(graph, 4).variables, "fc1_weight": many}))
