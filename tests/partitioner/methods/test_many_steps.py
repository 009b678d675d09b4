"""Searches of many steps: their plans, bounds and limits, against the joint search of all sequences."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner import partition
from tofu.partitioner.methods import exact as exact_module
from tofu.partitioner.methods.exact import exact
from tofu.partitioner.plans.space import SPLIT, Space
from tofu.partitioner.problem.classes import build_problem

from .training_graphs import seeds, training_graph


@pytest.fixture(params=[SPLIT, Space(True), Space(True, "batch", True)], ids=str)
def space(request):
    return request.param


@seeds
def test_the_optimum_lies_between_bound_and_plan(toy, texts, seed, space, monkeypatch):
    problem = build_problem(training_graph(toy, texts, seed), space=space)
    best = exact(problem, 8)
    monkeypatch.setattr(exact_module, "SEQUENCE_LIMIT", 0)
    monkeypatch.setattr(exact_module, "JOINT_ENTRIES", 0)
    found = exact(problem, 8)
    assert found.lower_bound.value <= best.cost.value <= found.cost.value
    assert found.unproven == () or found.lower_bound != found.cost


@seeds
def test_small_tables_leave_no_large_gap(toy, texts, seed, space, monkeypatch):
    problem = build_problem(training_graph(toy, texts, seed), space=space)
    best = exact(problem, 8)
    monkeypatch.setattr(exact_module, "SEQUENCE_LIMIT", 0)
    found = exact(problem, 8)
    small = exact_module.SMALL_GAP * found.cost.value
    assert best.cost.value <= found.cost.value <= found.lower_bound.value + small


@pytest.mark.parametrize(
    ("keep", "model"),
    [(False, "mlp"), pytest.param(False, "lenet", marks=pytest.mark.slow), (True, "mlp"), (True, "lenet")],
)
def test_sixteen_workers_have_a_close_bound(model, keep, monkeypatch):
    graph = tofu.models.get(model).training_graph()
    monkeypatch.setattr(exact_module, "JOINT_ENTRIES", 0)
    refined = partition(graph, 16, method="refine", keep=keep)
    plan = partition(graph, 16, method="exact", keep=keep)
    assert refined.lower_bound_bytes < plan.lower_bound_bytes <= plan.cost_bytes
    assert keep or plan.cost_bytes <= refined.cost_bytes  # what is repeated has a price as well
    assert plan.cost_bytes - plan.lower_bound_bytes <= 0.05 * plan.cost_bytes


def test_pins_hold_and_are_within_the_bound(monkeypatch):
    monkeypatch.setattr(exact_module, "SEQUENCE_LIMIT", 0)
    graph = tofu.models.get("mlp").training_graph()
    name = "fc1_weight"
    free = partition(graph, 16, method="exact", keep=False)
    dimensions = free.layouts[name].dimensions
    other = 1 - dimensions[0] if dimensions[0] is not None else 0
    pinned = partition(graph, 16, method="exact", constraints=[f"pin {name}={other},*,*,*"], keep=False)
    assert pinned.layouts[name].dimensions[0] == other
    assert free.lower_bound_bytes <= pinned.cost_bytes
    assert pinned.lower_bound_bytes <= pinned.cost_bytes
