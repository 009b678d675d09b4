"""Training graphs as nodes: what is read, stored and overwritten."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.simulator.times import task_times

from .nodes import MACHINE, nodes_of


@pytest.fixture(scope="module", params=["mlp", "lenet", "lstm"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return tofu.models.get(request.param, batch=4).training_graph()


def test_nodes_are_in_order(graph: Graph) -> None:
    edges = nodes_of(graph).nodes.edges
    assert (edges[:, 0] < edges[:, 1]).all()


def test_values_are_the_tensors_that_operations_make_or_overwrite(graph: Graph) -> None:
    found = nodes_of(graph)
    made = [tensor for each in graph.operations for tensor in each.outputs]
    sizes = {t.index: prod(t.shape) * t.itemsize for t in graph.tensors}
    assert found.nodes.sent_bytes.tolist() == [sizes[tensor] for tensor in (*found.written, *made)]
    overwriting = [graph.tensors[tensor].alias is not None for tensor in made]
    stored = found.nodes.stored_bytes[len(found.written) :]
    assert (stored[np.array(overwriting)] == 0).all()
    assert found.nodes.lasting[: len(found.written)].all()


def test_what_is_overwritten_follows_its_update(graph: Graph) -> None:
    found = nodes_of(graph)
    leader, first = found.nodes.leader, found.first_operation
    assert (leader[leader] == leader).all()
    for operation in graph.operations:
        for tensor in operation.outputs:
            root = found.graph.roots[tensor]
            if root != tensor and root in found.written:
                assert leader[found.written.index(root)] == leader[first + operation.index]


def test_readers_run_before_what_they_read_is_overwritten(graph: Graph) -> None:
    found = nodes_of(graph)
    edges, first = set(map(tuple, found.nodes.edges.tolist())), found.first_operation
    for operation in graph.operations:
        for output in operation.outputs:
            for other in graph.operations:
                if other is not operation and graph.tensors[output].alias in other.inputs:
                    assert (first + other.index, first + operation.index) in edges


def test_times_are_those_of_the_simulator(graph: Graph) -> None:
    found = nodes_of(graph)
    times = task_times(graph, MACHINE, 4)
    for operation in graph.operations[::7]:
        box = operation.bound.full_box[None]
        node = found.first_operation + operation.index
        assert found.nodes.nanoseconds[0, node] == times(operation, np.array([0]), box)[0]
