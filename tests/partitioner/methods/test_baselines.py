"""The methods that others are compared with keep to what they are."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner import partition


def test_methods_keep_to_what_they_are(graph):
    def plans(method):
        return partition(graph, 4, method=method, feed="anywhere")

    for operation in graph.operations:
        kinds = {operation.bound.kind(v) for v in plans("icml18").strategies[operation.name] if v}
        assert "reduce" not in kinds
    for tensor in graph.tensors:
        first = [axis for axis, extent in enumerate(tensor.shape) if extent >= 2][:1] or [None]
        assert plans("all-row").layouts[tensor.name].dimensions[0] == first[0]
        chopped = plans("equal-chop").layouts[tensor.name].dimensions
        if max(tensor.shape) >= 4:
            assert len(set(chopped)) == 1


@pytest.mark.parametrize("method", ["all-row", "equal-chop", "icml18", "spartan"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_plans_that_minimise_the_time_of_a_step_verify(method, workers):
    graph = tofu.models.get("lenet", batch=8).training_graph()
    tofu.partition(graph, workers, method, machine="pcie-8", objective="step-time").verify(graph)
