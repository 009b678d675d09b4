"""A plan's bytes by operation and tensor, against sets of elements."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tofu import lower, models
from tofu.partitioner import partition
from tofu.partitioner.costs import plan_bytes
from tofu.partitioner.costs.plan_bytes import count, count_bytes
from tofu.plans import Copy, Spread, compose

from ..methods.elements import moved_bytes


@pytest.mark.parametrize("workers", [1, 4, 6])
def test_every_contribution_is_what_sets_of_elements_say(graph, workers):
    plan = partition(graph, workers, keep=False)
    dimensions = {tensor.index: plan.layouts[tensor.name].dimensions for tensor in graph.tensors}
    found = count(graph, plan.layouts, plan.strategies, plan.factors)
    by_operation: dict[str, Counter[str]] = {operation.name: Counter() for operation in graph.operations}
    for contribution in found:
        by_operation[contribution.operation][contribution.tensor] += contribution.bytes
    for operation in graph.operations:
        moved = moved_bytes(graph, operation, plan.strategies[operation.name], dimensions, plan.factors)
        expected = {graph.tensors[tensor].name: nbytes for tensor, nbytes in moved.items()}
        assert by_operation[operation.name] == expected
    assert sum(contribution.bytes for contribution in found) == plan.cost_bytes


def test_the_kind_says_what_moves(graph):
    plan = partition(graph, 4, keep=False)
    kinds = {}
    for operation in graph.operations:
        split = {operation.bound.kind(v) for v in plan.strategies[operation.name] if v is not None}
        for tensor in operation.outputs:
            kinds[operation.name, graph.tensors[tensor].name] = "reduce" if "reduce" in split else "concat"
    for found in count(graph, plan.layouts, plan.strategies, plan.factors):
        assert found.kind == kinds.get((found.operation, found.tensor), "fetch")


def test_sums_of_the_first_steps_are_plans_of_fewer_groups(graph):
    plan = partition(graph, 4, keep=False)
    totals = count_bytes(graph, plan.layouts, plan.strategies, plan.factors)
    assert (totals[0], totals[-1]) == (0, plan.cost_bytes)
    assert [b - a for a, b in pairwise(totals)] == list(plan.step_cost_bytes)


def test_pairs_are_counted_in_pieces(monkeypatch):
    """A count does not depend on how many pairs of regions are compared at a time."""
    graph = models.get("mlp", batch=8).training_graph()
    plan = partition(graph, 4, "data-parallel")
    counted = count(graph, plan.layouts, plan.strategies, plan.factors, plan.versions_read(graph))
    monkeypatch.setattr(plan_bytes, "PAIRS", 3)
    assert count(graph, plan.layouts, plan.strategies, plan.factors, plan.versions_read(graph)) == counted
    assert sum(entry.bytes for entry in counted) == plan.cost_bytes


def test_a_copy_counts_even_if_the_operation_it_is_made_for_reads_only_its_shape():
    graph = models.get("mlp", batch=8).training_graph()
    shape_only = next(
        (operation, tensor)
        for operation in graph.operations
        for tensor in operation.inputs
        if tensor not in {operation.inputs[place] for place, _ in operation.bound.read_places}
    )
    operation, tensor = shape_only[0], graph.tensors[shape_only[1]]
    copy = Copy(Spread((), (1,)), (operation.name,))
    tensors = {t.name: Spread((), (0,)) for t in graph.tensors if t.alias is None}
    plan = compose(graph, 2, {"*": Spread((), (0,))}, tensors, copies={tensor.name: [copy]})
    assert plan.cost_bytes == lower(graph, plan).planned_bytes > 0
