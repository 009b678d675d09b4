"""Plans of every method, written out part by part, are lowered to the same programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tofu
from tofu.analyzer.indices.region import Region
from tofu.partitioner.layouts.forms import Parts
from tofu.partitioner.layouts.parts import holdings, tasks
from tofu.partitioner.methods.method import METHODS
from tofu.partitioner.plans.plan import Plan

MODELS = {
    "mlp": {"batch": 12},
    "lenet": {"batch": 6},
    "lstm": {"batch": 6, "steps": 2, "hidden": 12},
}

SEARCHES = [
    pytest.param(name, marks=pytest.mark.slow if method.slow else ()) for name, method in METHODS.items()
]


def expanded(graph: Any, plan: Plan) -> Plan:
    """Return the plan with the parts that its forms stand for."""
    layouts, strategies = {}, {}
    for name, layout in plan.layouts.items():
        held = Parts(tuple(part_of(part.worker, part.region, part.term) for part in holdings(layout)))
        layouts[name] = replace(layout, form=held)
    for operation in graph.operations:
        parts = tasks(operation.bound, plan.strategies[operation.name], plan.factors)
        strategies[operation.name] = Parts(tuple(part_of(part.worker, part.box, part.read) for part in parts))
    return replace(
        plan,
        layouts=layouts,
        strategies=strategies,
        step_cost_bytes=(plan.cost_bytes,),
        lower_bound_bytes=0,
        unproven=(),
    )


def part_of(worker: int, box: Region, term: int | None) -> Any:
    """Return a part as forms list it; the term is left out if there is one alone."""
    return (worker, box) if term is None else (worker, box, term)


@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_parts_say_what_steps_say(name: str, method: str, workers: int) -> None:
    graph = tofu.models.get(name, **MODELS[name]).training_graph()
    plan = tofu.partition(graph, workers, method)
    parts = expanded(graph, plan)
    tofu.verify(graph, parts)
    assert tofu.lower(graph, parts) == tofu.lower(graph, plan)
