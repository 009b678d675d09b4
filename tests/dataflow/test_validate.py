from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tofu import GraphError
from tofu.dataflow.builder import GraphBuilder
from tofu.dataflow.graph import Graph, Phase, Role, Tensor
from tofu.dataflow.validate import validate
from tofu.operators.stages.stage import Stage

DOUBLE = "def double(x):\n    return lambda i: x[i] * 2"


@pytest.fixture
def chain(stage: Callable[[str], Stage]) -> Graph:
    """x -> a -> b, and w -> new w in place."""
    builder = GraphBuilder("chain")
    x = builder.tensor("x", (3,), Role.DATA)
    w = builder.tensor("w", (3,), Role.PARAMETER)
    (a,) = builder.apply("first", stage(DOUBLE), [x], ["a"])
    (b,) = builder.apply("second", stage(DOUBLE), [a], ["b"])
    builder.apply("update", stage(DOUBLE), [w], ["new w"], phase=Phase.UPDATE, aliases=[w])
    return builder.build([b])


def index(graph: Graph, name: str) -> int:
    return next(tensor.index for tensor in graph.tensors if tensor.name == name)


def position(graph: Graph, name: str) -> int:
    return next(operation.index for operation in graph.operations if operation.name == name)


def with_operation(graph: Graph, which: str, /, **changes: object) -> Graph:
    operations = tuple(
        replace(o, **changes) if o.name == which else o  # type: ignore[arg-type]
        for o in graph.operations
    )
    return replace(graph, operations=operations)


def with_tensor(graph: Graph, which: str, /, **changes: object) -> Graph:
    tensors = tuple(
        replace(t, **changes) if t.name == which else t  # type: ignore[arg-type]
        for t in graph.tensors
    )
    return replace(graph, tensors=tensors)


def test_a_sound_graph_passes(chain: Graph) -> None:
    validate(chain)


def test_an_empty_graph_is_refused() -> None:
    with pytest.raises(GraphError, match="'nothing' has no operations"):
        validate(Graph("nothing", (), (), ()))


def test_duplicate_names(chain: Graph) -> None:
    with pytest.raises(GraphError, match="two tensors are named 'x'"):
        validate(with_tensor(chain, "a", name="x"))
    with pytest.raises(GraphError, match="two operations are named 'first'"):
        validate(with_operation(chain, "second", name="first"))


def test_a_cycle_is_named(chain: Graph) -> None:
    with pytest.raises(GraphError, match=r"cycle: (first -> second -> first|second -> first -> second)"):
        validate(with_operation(chain, "first", inputs=(index(chain, "b"),)))


def test_reading_before_producing(chain: Graph) -> None:
    first, second = position(chain, "first"), position(chain, "second")
    operations = list(chain.operations)
    operations[first], operations[second] = (
        replace(operations[second], index=first),
        replace(operations[first], index=second),
    )
    with pytest.raises(GraphError, match="'second' reads 'a' before 'first' produces it"):
        validate(replace(chain, operations=tuple(operations)))


def test_a_dangling_input(chain: Graph) -> None:
    with pytest.raises(GraphError, match="operation 'first' reads 'x', which nothing produces"):
        validate(with_tensor(chain, "x", role=Role.ACTIVATION))
    with pytest.raises(GraphError, match="refers to tensor 99, but there are 5 tensors"):
        validate(with_operation(chain, "first", inputs=(99,)))


def test_an_output_that_does_not_exist(chain: Graph) -> None:
    with pytest.raises(GraphError, match="output 7 of the graph does not exist"):
        validate(replace(chain, outputs=(7,)))
    with pytest.raises(GraphError, match="the graph's output list reads 'b', which nothing produces"):
        validate(with_operation(chain, "second", outputs=()))


def test_two_producers(chain: Graph) -> None:
    with pytest.raises(GraphError, match="'a' is produced by 'first' and 'second'"):
        validate(with_operation(chain, "second", outputs=(index(chain, "a"),)))


def test_writing_a_persistent_tensor_without_alias(chain: Graph) -> None:
    with pytest.raises(GraphError, match="writes parameter tensor 'new w'"):
        validate(with_tensor(chain, "new w", alias=None))


def test_an_alias_of_another_shape_or_type(chain: Graph, stage: Callable[[str], Stage]) -> None:
    with pytest.raises(GraphError, match=r"in float32 cannot overwrite 'w' of shape .* in float64"):
        validate(with_tensor(chain, "w", dtype="float64"))
    builder = GraphBuilder("sum")
    w = builder.tensor("w", (3,), Role.PARAMETER)
    total = stage("def total(x):\n    return lambda j=1: Sum(lambda i: x[i])")
    builder.apply("total", total, [w], ["new w"], aliases=[w])
    with pytest.raises(GraphError, match=r"'new w' of shape \(1,\) in .* overwrite 'w' of shape \(3,\)"):
        validate(builder.build([]))


def test_an_alias_of_no_tensor_or_of_another_alias(chain: Graph) -> None:
    with pytest.raises(GraphError, match="'new w' is an alias of tensor 99, which does not exist"):
        validate(with_tensor(chain, "new w", alias=99))
    with pytest.raises(GraphError, match="'b' is an alias of 'new w', itself an alias"):
        validate(with_tensor(chain, "b", alias=index(chain, "new w")))


def test_an_alias_that_nothing_produces(chain: Graph) -> None:
    stray = Tensor(len(chain.tensors), "stray", (3,), Role.PARAMETER, "float32", index(chain, "w"))
    with pytest.raises(GraphError, match="'stray' overwrites 'w' but nothing produces it"):
        validate(replace(chain, tensors=(*chain.tensors, stray)))


def test_overwriting_what_is_no_persistent_tensor(chain: Graph) -> None:
    with pytest.raises(GraphError, match="overwrites 'a', which is not persistent"):
        validate(with_tensor(chain, "new w", alias=index(chain, "a")))


def test_overwriting_twice(chain: Graph, stage: Callable[[str], Stage]) -> None:
    builder = GraphBuilder("twice")
    w = builder.tensor("w", (3,), Role.PARAMETER)
    builder.apply("one", stage(DOUBLE), [w], ["w1"], aliases=[w])
    builder.apply("two", stage(DOUBLE), [w], ["w2"], aliases=[w])
    with pytest.raises(GraphError, match="'w' is overwritten by 'one' and 'two'"):
        validate(builder.build([]))


def test_reading_after_overwriting(stage: Callable[[str], Stage]) -> None:
    builder = GraphBuilder("late")
    w = builder.tensor("w", (3,), Role.PARAMETER)
    builder.apply("update", stage(DOUBLE), [w], ["new w"], aliases=[w])
    (y,) = builder.apply("reader", stage(DOUBLE), [w], ["y"])
    with pytest.raises(GraphError, match="'reader' reads 'w' after 'update' has overwritten it"):
        validate(builder.build([y]))


def test_shapes_that_differ_from_the_bound_operator(chain: Graph) -> None:
    with pytest.raises(GraphError, match=r"'first' was bound to x of shape \(3,\).*'x' has shape \(5,\)"):
        validate(with_tensor(chain, "x", shape=(5,)))
    with pytest.raises(GraphError, match=r"'second' makes shape \(3,\), but its output 'b' has shape \(5,\)"):
        validate(with_tensor(chain, "b", shape=(5,)))
    with pytest.raises(GraphError, match="'first' lists 2 inputs and 1 outputs"):
        validate(with_operation(chain, "first", inputs=(0, 1)))


def test_a_wrong_number(chain: Graph) -> None:
    with pytest.raises(GraphError, match="'b' has number 0 but is at position"):
        validate(with_tensor(chain, "b", index=0))
