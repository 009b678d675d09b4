"""Steps that learn run with the last micro-batch only, and all others always."""

from __future__ import annotations

import tofu
from tofu.dataflow import sym
from tofu.programs.program import PartitionedGraph
from tofu.runtime.update_gate import UpdateGate, gated_instructions


def lowered(micro_batches: int) -> PartitionedGraph:
    with sym.NameScope():
        net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=4), name="softmax")
    shapes = {"data": (8, 4), "softmax_label": (8,)}
    graph = tofu.training_graph(net, shapes, micro_batches=micro_batches)
    return tofu.lower(graph, tofu.partition(graph, 2))


def test_instructions_that_overwrite_parameters_are_gated() -> None:
    partitioned = lowered(micro_batches=2)
    graph = partitioned.graph
    for program, gated in zip(partitioned.programs, gated_instructions(partitioned), strict=True):
        learning = {
            graph.operations[instruction.operation].name
            for instruction, learns in zip(program.instructions, gated, strict=True)
            if learns
        }
        targets = {
            operation.name
            for operation in graph.operations
            for tensor in map(graph.tensors.__getitem__, operation.outputs)
            if tensor.alias is not None and graph.tensors[tensor.alias].name.startswith("fullyconnected")
        }
        assert targets
        assert targets <= learning
        assert len(learning) < len(graph.operations)


def test_without_micro_batches_nothing_is_gated() -> None:
    assert not any(map(any, gated_instructions(lowered(micro_batches=1))))


def test_a_closed_gate_leaves_the_other_steps() -> None:
    partitioned = lowered(micro_batches=2)
    gated = gated_instructions(partitioned)[0]
    gate, ran = UpdateGate(partitioned), []
    steps = gate.passed(0, [lambda number=number: ran.append(number) for number in range(len(gated))])
    for step in steps:
        step()
    assert ran == list(range(len(gated)))
    gate.open = False
    ran.clear()
    for step in steps:
        step()
    assert ran == [number for number, learns in enumerate(gated) if not learns]
    assert 0 < len(ran) < len(gated)
