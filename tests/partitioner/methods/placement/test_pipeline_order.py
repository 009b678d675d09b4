"""Orders of pipelines: turns of stages as published, and valid orders of graphs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Phase
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import training_graph
from tofu.errors import PlanError
from tofu.partitioner.methods.placement.pipeline_order import PipelineOrder, pipeline_priorities

LAYERS = 4


@cache
def chain(micro_batches: int, dropout: bool = False, recompute: int = 1) -> Graph:
    """Fully connected layers, with batch normalisation and so with state."""
    with NameScope():
        net = sym.Variable("data")
        for layer in range(LAYERS):
            net = sym.FullyConnected(net, num_hidden=3, name=f"fc{layer}")
            net = sym.BatchNorm(net, name=f"bn{layer}")
            net = sym.Dropout(net, p=0.5, name=f"drop{layer}") if dropout else net
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (2, 3), "label": (2, 3)}
    return training_graph(net, shapes, micro_batches=micro_batches, unroll=True, recompute=recompute)


def stages(graph: Graph, cuts: list[int]) -> list[int]:
    """Cut the forward part in the order of the graph; backward operations are mirrored, updates follow."""
    maker = {tensor: operation.index for operation in graph.operations for tensor in operation.outputs}
    found: dict[str, int] = {}
    forward = [o for o in graph.operations if o.phase is Phase.FORWARD and o.micro_batch == 0]
    backward = [o for o in graph.operations if o.phase is Phase.BACKWARD and o.micro_batch == 0]
    for place, operation in enumerate(forward):
        found[base(operation.name)] = sum(cut * len(forward) <= 100 * place for cut in cuts)
    for place, operation in enumerate(reversed(backward)):
        found[base(operation.name)] = sum(cut * len(backward) <= 100 * place for cut in cuts)
    result: list[int] = []
    for operation in graph.operations:
        read = [result[maker[tensor]] for tensor in operation.inputs if tensor in maker]
        late = min(read, default=0) if operation.phase is Phase.BACKWARD else max(read, default=0)
        result.append(found.setdefault(base(operation.name), late))
    return result


def base(name: str) -> str:
    return name.partition("@")[0]


def sequence(graph: Graph, stage: list[int], order: PipelineOrder, wanted: int) -> list[str]:
    """The parts of a stage in their order, such as `F0`: those of fully connected layers."""
    places = pipeline_priorities(graph, stage, order)
    found: dict[str, None] = {}
    for index in np.argsort(places):
        operation = graph.operations[index]
        if stage[index] == wanted and operation.phase is not Phase.UPDATE:
            part = "F" if operation.phase is Phase.FORWARD else "B"
            found.setdefault(f"{part}{operation.micro_batch}")
    return list(found)


@pytest.mark.parametrize(
    ("order", "wanted", "expected"),
    [
        (PipelineOrder.MICRO_BATCHES, 0, "F0 B0 F1 B1 F2 B2 F3 B3"),
        (PipelineOrder.FORWARD_FIRST, 1, "F0 F1 F2 F3 B0 B1 B2 B3"),
        (PipelineOrder.ONE_FORWARD_ONE_BACKWARD, 0, "F0 F1 F2 B0 F3 B1 B2 B3"),
        (PipelineOrder.ONE_FORWARD_ONE_BACKWARD, 1, "F0 F1 B0 F2 B1 F3 B2 B3"),
        (PipelineOrder.ONE_FORWARD_ONE_BACKWARD, 2, "F0 B0 F1 B1 F2 B2 F3 B3"),
    ],
)
def test_stages_work_as_published(order: PipelineOrder, wanted: int, expected: str) -> None:
    graph = chain(4)
    assert sequence(graph, stages(graph, [33, 66]), order, wanted) == expected.split()


@given(
    st.sampled_from([(2, False, 1), (3, True, 1), (5, True, 1), (4, True, 2)]),
    st.lists(st.integers(1, 99), max_size=5),
    st.sampled_from(PipelineOrder),
)
def test_orders_are_valid(made: tuple[int, bool, int], cuts: list[int], order: PipelineOrder) -> None:
    """Inputs are made first, and what is overwritten is read first."""
    graph = chain(*made)
    places = pipeline_priorities(graph, stages(graph, cuts), order)
    assert sorted(places) == list(range(len(graph.operations)))
    maker = {tensor: operation.index for operation in graph.operations for tensor in operation.outputs}
    writer = {graph.tensors[t].alias: index for t, index in maker.items()}
    for operation in graph.operations:
        for tensor in operation.inputs:
            assert places[maker.get(tensor, operation.index)] <= places[operation.index]
            assert places[writer.get(tensor, operation.index)] >= places[operation.index]


def test_one_stage_for_each_operation_is_needed() -> None:
    graph = chain(2)
    with pytest.raises(PlanError, match=rf"3 stages were given for {len(graph.operations)} operations"):
        pipeline_priorities(graph, [0, 0, 1], PipelineOrder.FORWARD_FIRST)
    with pytest.raises(PlanError, match="a number from 0"):
        pipeline_priorities(graph, [-1] * len(graph.operations), PipelineOrder.FORWARD_FIRST)
