"""Merged graphs compute and learn what their graphs do, and have the operations that touch fewer bytes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tofu.dataflow.graph import Graph, Operation, Phase
from tofu.dataflow.merging.candidates import candidates
from tofu.dataflow.merging.merged import MOST_PARTS, merged
from tofu.dataflow.training import training_graph
from tofu.dataflow.validate import validate
from tofu.models import get

from .networks import NETWORKS, after


def graph_of(name: str, **settings: object) -> Graph:
    symbol, shapes = NETWORKS[name]()
    return training_graph(symbol, shapes, "sgd", dtype="float64", **settings)  # type: ignore[arg-type]


def kinds(graph: Graph) -> Counter[str]:
    return Counter(operation.bound.description.name for operation in graph.operations)


@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_those_of_the_graph(name: str) -> None:
    graph = graph_of(name)
    found = merged(graph)
    validate(found)
    assert found is not graph
    expected, computed = after(graph), after(found)
    assert expected.keys() == computed.keys()
    for each, value in expected.items():
        np.testing.assert_allclose(computed[each], value, rtol=1e-9, atol=1e-12)


def test_products_of_all_time_steps_are_one() -> None:
    graph = graph_of("recurrent")
    found = merged(graph)
    before, now = kinds(graph), kinds(found)
    # Four steps of two layers, each with a product of inputs and one of the state, which waits for others.
    assert before["FullyConnected_product"] == 17
    assert now["FullyConnected_product"] == 1 + 1 + 8 + 1
    # Each weight has one gradient, and nothing is left to be added up.
    assert before["FullyConnected_product_grad_weight"] == 17
    assert now["FullyConnected_product_grad_weight"] == 5
    sums = {each.name for each in found.operations if ".sum" in each.name}
    assert not any("weight" in name or "bias" in name for name in sums)
    learned = {t.name for t in graph.tensors if t.name.startswith("grad(") and "weight" in t.name}
    assert {"grad(l0_i2h_weight)", "grad(l1_h2h_weight)"} <= learned & {t.name for t in found.tensors}


def test_stacks_are_shared() -> None:
    found = merged(graph_of("recurrent"))
    stacks = [
        operation.inputs for operation in found.operations if operation.bound.description.name == "stack"
    ]
    assert len({frozenset(each) for each in stacks}) == len(stacks)
    readers = Counter(index for operation in found.operations for index in operation.inputs)
    gates = next(t.index for t in found.tensors if t.name.startswith("stacked(grad(l1_"))
    assert readers[gates] == 5  # gradients of two weights, of two biases, and of the inputs


def test_what_was_sliced_is_not_stacked_again() -> None:
    """The bias is added to the merged product, so the product itself is never sliced."""
    found = merged(graph_of("siamese"))
    (product,) = (o for o in found.operations if o.bound.description.name == "FullyConnected_product")
    (biased,) = (o for o in found.operations if o.bound.description.name == "FullyConnected")
    assert product.outputs[0] in biased.inputs


def test_siblings_that_wait_for_each_other_stay() -> None:
    graph = graph_of("crossed")
    siblings = [each.members for each in candidates(graph) if each.total is None]
    names = [{graph.operations[number].name for number in members} for members in siblings]
    assert [{"a1", "a2"}, {"b1", "b2"}] == [each for each in names if "a1" in each or "b1" in each]
    products = [o for o in merged(graph).operations if o.bound.description.name.startswith("FullyConnected")]
    forward = [o for o in products if o.phase.value == "forward"]
    assert len(forward) == 3  # one group is merged, and the other one cannot be any more


def test_merges_that_touch_more_bytes_are_not_made() -> None:
    """Products of many rows read the rows once if their weights are stacked; of one row, weights are more."""
    graph = graph_of("projections")
    large = training_graph(
        NETWORKS["projections"]()[0], {"data": (1, 64), "label": (1, 2)}, "sgd", dtype="float64"
    )
    assert kinds(merged(graph))["FullyConnected_product"] + kinds(merged(graph))["FullyConnected"] == 1
    assert kinds(merged(large)) == kinds(large)


def test_micro_batches_stay_apart() -> None:
    graph = graph_of("siamese", micro_batches=2, unroll=True)
    found = merged(graph)
    made = [operation for operation in found.operations if operation.name.startswith("merged(")]
    assert {operation.micro_batch for operation in made} >= {0, 1}


def test_many_time_steps_become_several_operations() -> None:
    steps = MOST_PARTS + 6
    graph = get("lstm", batch=2, steps=steps, hidden=16).training_graph()
    assert max(len(each.inputs) for each in merged(graph).operations if _is_stack(each)) == MOST_PARTS


def _is_stack(operation: Operation) -> bool:
    return operation.bound.description.name == "stack"


def test_updates_come_after_the_last_reader() -> None:
    found = merged(graph_of("recurrent"))
    assert [operation.index for operation in found.operations] == list(range(len(found.operations)))
    overwritten = {
        found.tensors[output].alias: operation.index
        for operation in found.operations
        for output in operation.outputs
        if found.tensors[output].alias is not None
    }
    for operation in found.operations:
        for index in operation.inputs:
            assert operation.index <= overwritten.get(index, operation.index)


def test_a_graph_without_candidates_stays() -> None:
    graph = get("mlp").training_graph()
    assert merged(graph) is graph


def test_what_the_forward_pass_reads_is_made_there() -> None:
    """The gradient of a weight stacks what the layer before made, and the merged product reads that stack."""
    found = merged(graph_of("recurrent"))
    maker = {tensor: operation for operation in found.operations for tensor in operation.outputs}
    forward = [each for each in found.operations if each.phase is Phase.FORWARD]
    read = {maker[tensor].name for each in forward for tensor in each.inputs if tensor in maker}
    assert any(name.startswith("stacked(") for name in read)
    assert read <= {each.name for each in forward}
