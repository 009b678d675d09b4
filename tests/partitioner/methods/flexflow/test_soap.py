"""The SOAP space that follows from descriptions and the graph."""

from __future__ import annotations

import pytest

from tofu.dataflow.graph import Phase
from tofu.partitioner.layouts.forms import Partial
from tofu.partitioner.methods.flexflow.soap import Dimension, Kind, find_soap

from .small_graphs import OPTIONS, graph_of


def dimensions(model: str, operation: str, sums: bool = False) -> dict[object, tuple[Kind, bool]]:
    """The kinds of an operation's dimensions by label, and whether they reduce."""
    graph = graph_of(model)
    soap = find_soap(graph, 4, sums)
    number = next(each.index for each in graph.operations if each.name == operation)
    decision = soap.decisions[soap.decision_of[number]]
    place = decision.operations.index(number)
    return {each.labels[place]: (each.kind, each.reduces) for each in decision.dimensions}


def test_dimensions_have_the_kinds_of_the_paper_and_of_its_backward_pass() -> None:
    sample, parameter, attribute = Kind.SAMPLE, Kind.PARAMETER, Kind.ATTRIBUTE
    assert dimensions("lenet", "conv1") == {
        "n": (sample, False),
        "f": (parameter, False),
        "x0": (attribute, False),
        "x1": (attribute, False),
    }
    assert dimensions("mlp", "fc2.product") == {"n": (sample, False), "h": (parameter, False)}
    weight = dimensions("mlp", "fc2.grad.FullyConnected_product.weight")
    assert weight == {"n": (sample, True), "h": (parameter, False), "k": (parameter, False)}
    data = dimensions("mlp", "fc2.grad.FullyConnected_product.data")
    assert data == {"n": (sample, False), "k": (parameter, False), "h": (parameter, True)}
    assert dimensions("mlp", "update(fc2_weight)")[None] == (Kind.REPLICA, False)


def test_sums_of_the_forward_pass_are_split_if_asked() -> None:
    assert dimensions("mlp", "fc2.product", sums=True)["k"] == (Kind.PARAMETER, True)


@pytest.mark.parametrize("model", OPTIONS)
def test_every_operation_is_decided_once_along_variables_that_can_be_split(model: str) -> None:
    graph = graph_of(model)
    soap = find_soap(graph, 4)
    decided = [number for decision in soap.decisions for number in decision.operations]
    assert sorted(decided) == list(range(len(graph.operations)))
    for decision in soap.decisions:
        for dimension in decision.dimensions:
            for number, label in zip(decision.operations, dimension.labels, strict=True):
                if isinstance(label, str):
                    bound = graph.operations[number].bound
                    assert bound.kind(label) == ("reduce" if dimension.reduces else "concat")
                    assert bound.extents[label] >= dimension.extent


def test_all_but_updates_and_sums_have_samples() -> None:
    """Also the first states of recurrent layers, which read nothing."""
    for model in OPTIONS:
        graph = graph_of(model)
        soap = find_soap(graph, 4)
        for decision in soap.decisions:
            first = graph.operations[decision.operations[0]]
            kinds = [dimension.kind for dimension in decision.dimensions]
            assert (Kind.SAMPLE in kinds) == (first.phase is not Phase.UPDATE), first.name


def test_the_gradients_of_a_parameter_that_are_added_are_one_decision() -> None:
    graph = graph_of("lstm")
    soap = find_soap(graph, 4)
    steps = OPTIONS["lstm"]["steps"]
    several = [decision for decision in soap.decisions if len(decision.operations) > 1]
    assert len(several) == 2 * 4
    """Of two layers: the weight and the bias of inputs, and those of states."""
    for decision in several:
        assert len(decision.operations) == 2 * steps - 1
        assert len(decision.terms) == 2 * steps - 2
        first: Dimension = decision.dimensions[0]
        assert first.kind is Kind.SAMPLE
        assert first.labels.count(Partial()) == steps - 1


def test_the_space_of_a_graph_is_found_once() -> None:
    graph, other = graph_of("mlp"), graph_of("lenet")
    found = find_soap(graph, 4)
    assert find_soap(graph, 4) is found
    assert find_soap(graph, 2).workers == 2
    assert find_soap(other, 2).graph is other
