"""Training graphs as networkx graphs."""

from __future__ import annotations

import networkx as nx
import pytest

import tofu
from tofu.dataflow.graph import Graph, Role


def training_graph() -> Graph:
    return tofu.models.get("mlp", batch=8).training_graph()


def test_nodes_are_operations_and_lasting_tensors() -> None:
    graph = training_graph()
    found = graph.to_networkx()
    lasting = [tensor for tensor in graph.tensors if tensor.role.persistent and tensor.alias is None]
    assert set(found) == {each.name for each in (*graph.operations, *lasting)}
    assert nx.is_directed_acyclic_graph(found)
    weight = next(tensor for tensor in graph.tensors if tensor.role is Role.PARAMETER)
    assert found.nodes[weight.name]["persistent_bytes"] == weight.nbytes
    assert found.nodes[weight.name]["output_persists"] is True
    assert sum(of.get("persistent_bytes", 0) for of in found.nodes.values()) == sum(
        tensor.nbytes for tensor in lasting
    )
    first = found.nodes["fc1.product"]
    assert (first["operator"], first["phase"]) == ("FullyConnected_product", "forward")
    assert first["bytes"] == 4 * 8 * 128
    assert "seconds" not in first
    assert set(found.predecessors("fc1.product")) == {"flatten", "fc1_weight"}


def test_updates_stand_with_what_they_overwrite_after_its_readers() -> None:
    found = training_graph().to_networkx()
    update, others = "update(fc2_weight)", ("fc2_weight", "mom(fc2_weight)")
    assert {found.nodes[node]["colocate"] for node in (update, *others)} == {"fc2_weight"}
    assert found.nodes[update]["output_persists"] is True
    reader = "fc2.grad.FullyConnected_product.data"
    assert found.has_edge("fc2_weight", reader)
    assert found.edges[reader, update] == {"bytes": 0}


def test_further_outputs_are_nodes_next_to_their_operation() -> None:
    """Gates of a cell are slices of one product, so an operation makes all four."""
    graph = tofu.models.get("lstm", batch=2).training_graph()
    found = graph.to_networkx()
    several = [
        operation
        for operation in graph.operations
        if len(operation.outputs) > 1 and graph.tensors[operation.outputs[1]].alias is None
    ]
    assert several
    for operation in several:
        tensor = graph.tensors[operation.outputs[1]]
        node = f"{operation.name}: {tensor.name}"
        assert found.nodes[node]["bytes"] == tensor.nbytes
        assert found.nodes[node]["seconds"] == 0
        assert found.nodes[node]["colocate"] == found.nodes[operation.name]["colocate"]
        assert found.edges[operation.name, node] == {"bytes": 0}


def test_seconds_are_those_of_the_machine() -> None:
    graph = training_graph()
    seconds = tofu.simulator.operation_seconds(graph, "dgx-1-v100")
    assert set(seconds) == {operation.name for operation in graph.operations}
    found = graph.to_networkx(seconds)
    assert all("seconds" in of for of in found.nodes.values())
    assert found.nodes["fc1.product"]["seconds"] is seconds["fc1.product"]
    one = tofu.simulate(tofu.lower(graph, tofu.partition(graph, 1)), "dgx-1-v100")
    assert sum(times["v100"] for times in seconds.values()) == pytest.approx(one.compute_seconds)
