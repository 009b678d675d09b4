"""Operations and tensors that decide together: by tie, by alias, and by what tied operations produce."""

from __future__ import annotations

from tofu.partitioner.problem.classes import build_problem


def test_without_ties_and_aliases_everything_decides_alone(toy, texts):
    builder = toy()
    a, b = builder.tensor(4, 4), builder.tensor(4, 4)
    builder.apply(texts["RELU"], builder.apply(texts["ADD"], a, b))
    problem = build_problem(builder.graph())
    assert problem.operation_class == (0, 1)
    assert problem.tensor_class == (0, 1, 2, 3)
    assert problem.shapes == ((4, 4),) * 4


def test_ties_join_operations_and_what_they_produce(toy, texts):
    builder = toy()
    inputs = [builder.tensor(4, 4) for _ in range(3)]
    outputs = [builder.apply(texts["RELU"], tensor, tie="t") for tensor in inputs[:2]]
    outputs.append(builder.apply(texts["RELU"], inputs[2]))
    other = builder.apply(texts["TRANSPOSE"], inputs[0], tie="t")
    graph = builder.graph()
    assert graph.operations[0].bound is graph.operations[1].bound, (
        "equal descriptions and shapes are bound once"
    )
    problem = build_problem(graph)
    assert problem.operation_class == (0, 0, 1, 2)
    assert problem.tensor_class[outputs[0]] == problem.tensor_class[outputs[1]]
    assert len({problem.tensor_class[tensor] for tensor in (*inputs, *outputs, other)}) == 6


def test_an_alias_has_the_class_of_its_tensor(toy, texts):
    builder = toy()
    weight, gradient, rate = builder.tensor(4, 3), builder.tensor(4, 3), builder.tensor(1)
    updated = builder.apply(texts["UPDATE"], weight, gradient, rate, aliases=(weight,))
    problem = build_problem(builder.graph())
    assert problem.tensor_class[updated] == problem.tensor_class[weight]
    assert len(set(problem.tensor_class)) == 3
    assert problem.shapes[problem.tensor_class[weight]] == (4, 3)
