"""Changes of a plan are taken back if an iteration takes no more time without them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

import tofu
from tofu.partitioner.methods.anneal.rewrites import Rewrites, Timed
from tofu.partitioner.methods.anneal.taken_back import Change, taken_back
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.recounted import recounted
from tofu.simulator.times import task_times

from ..flexflow.small_graphs import graph_of
from .test_rewrites import search_of

WORKERS = 4


def changed(graph: Any, before: Plan, other: Plan, seed: int) -> tuple[Plan, list[Change]]:
    """A plan whose operations and outputs are those of one of two plans, drawn one by one."""
    draw, changes = Random(seed), []
    strategies, layouts = dict(before.strategies), dict(before.layouts)
    for operation in graph.operations:
        tensors = [graph.tensors[each] for each in operation.outputs]
        if draw.random() < 0.5 and all(each.alias is None for each in tensors):
            names = [each.name for each in tensors]
            changes.append(Change([operation.name], names))
            strategies[operation.name] = other.strategies[operation.name]
            layouts.update((name, other.layouts[name]) for name in names)
    return recounted(graph, replace(before, strategies=strategies, layouts=layouts)), changes


def rewrites_of(graph: Any) -> Rewrites:
    asked = search_of(graph, "p100-node", WORKERS)
    return Rewrites(asked, task_times(graph, asked.machine, WORKERS))


@pytest.mark.parametrize("seed", range(6))
def test_neither_time_nor_bytes_rise(seed: int) -> None:
    graph = graph_of("mlp")
    rewrites = rewrites_of(graph)
    before, other = (tofu.partition(graph, WORKERS, method) for method in ("recursive", "data-parallel"))
    plan, changes = changed(graph, before, other, seed)
    found = Timed(rewrites.nanoseconds(plan), plan)
    made = taken_back(graph, before, found, changes, rewrites)
    assert made.nanoseconds <= found.nanoseconds
    assert made.nanoseconds == rewrites.nanoseconds(made.plan)
    assert made.plan.cost_bytes == made.plan.count(graph)[-1]
    assert made is found or (made.nanoseconds, made.plan.cost_bytes) < (found.nanoseconds, plan.cost_bytes)
    tofu.verify(graph, made.plan)


def test_what_costs_time_is_taken_back_and_what_saves_time_stays() -> None:
    graph = graph_of("mlp")
    rewrites = rewrites_of(graph)
    plans = [tofu.partition(graph, WORKERS, method) for method in ("recursive", "all-row")]
    fast, slow = sorted(
        (Timed(rewrites.nanoseconds(plan), plan) for plan in plans), key=lambda t: t.nanoseconds
    )
    everything = Change([each.name for each in graph.operations], [each.name for each in graph.tensors])
    assert taken_back(graph, fast.plan, slow, [everything], rewrites).nanoseconds == fast.nanoseconds
    assert taken_back(graph, slow.plan, fast, [everything], rewrites) is fast
