"""Arenas without programs are those of the lowered plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner import lower, partition
from tofu.partitioner.lowering.arenas import Arenas
from tofu.programs.memory import plan_memory

from .assignments import MODELS, network, random_plan


def check(arenas, graph, plan):
    planned, found = plan_memory(lower(graph, plan)), arenas.figures(plan)
    assert arenas.largest(plan) == max(planned.arena_bytes)
    assert found.arena_bytes == planned.arena_bytes
    assert found.largest == planned.largest
    assert found.peak_kinds == planned.peak_kinds
    for mine, others in zip(found.live_bytes, planned.live_bytes, strict=True):
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("name", MODELS)
def test_random_plans(name):
    """Plans in any form and order, with copies and terms, of which those before leave uses behind."""
    graph = network(name)
    arenas = Arenas(graph)
    plans = [random_plan(graph, 2 + seed % 4, seed) for seed in range(6)]
    assert any(plan.copies for plan in plans)
    for plan in (*plans, *plans[:2]):
        check(arenas, graph, plan)


@pytest.mark.parametrize("method", ["recursive", "refine", "data-parallel"])
def test_plans_of_searches(method):
    graph = tofu.models.get("gpt-1-16", batch=12).training_graph()
    arenas = Arenas(graph)
    for workers in (1, 2, 4, 6):
        plan = partition(graph, workers, method)
        check(arenas, graph, plan)


def test_another_graph():
    graph = network("mlp")
    plan = partition(graph, 2)
    with pytest.raises(PlanError, match="the plan was made for a graph with fingerprint"):
        Arenas(graph).largest(replace(plan, fingerprint="0" * 64))
