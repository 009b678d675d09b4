"""The differences of two plans."""

from __future__ import annotations

import dataclasses

import pytest

from tofu.errors import PlanError
from tofu.partitioner import partition
from tofu.partitioner.explaining.difference import difference


def test_a_plan_does_not_differ_from_itself(graph):
    plan = partition(graph, 4, keep=False)
    found = difference(graph, plan, plan)
    assert found.operators == found.tensors == ()
    assert found.cost_bytes == (plan.cost_bytes, plan.cost_bytes)


@pytest.mark.parametrize("workers", [4, 6])
def test_changes_add_up(graph, workers):
    first, second = partition(graph, 4, keep=False), partition(graph, workers, method="all-row")
    found = difference(graph, first, second)
    changes = [entry.bytes[1] - entry.bytes[0] for entry in found.operators]
    assert sum(changes) == second.cost_bytes - first.cost_bytes
    assert [abs(change) for change in changes] == sorted(map(abs, changes), reverse=True)
    differing = {
        t.name for t in graph.tensors if first.layouts[t.name].dimensions != second.layouts[t.name].dimensions
    }
    assert {entry.name for entry in found.tensors} == differing


def test_plans_for_two_graphs_are_refused(graph):
    plan = partition(graph, 4, keep=False)
    other = dataclasses.replace(plan, fingerprint="0" * 64)
    with pytest.raises(PlanError, match="different graphs"):
        difference(graph, plan, other)
    with pytest.raises(PlanError, match="fingerprint"):
        difference(graph, other, other)
