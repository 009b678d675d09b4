from __future__ import annotations

from collections.abc import Callable

import pytest

from tofu import GraphError
from tofu.dataflow.builder import GraphBuilder, Names
from tofu.dataflow.graph import Phase, Role
from tofu.dataflow.validate import validate
from tofu.operators.stages.stage import Stage

MAKE = Callable[[str], Stage]
DOUBLE = "def double(x):\n    return lambda i: x[i] * 2"
ADD = "def add(x, y):\n    return lambda i: x[i] + y[i]"


def test_a_graph_is_numbered_in_order(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    x = builder.tensor("x", (3,), Role.DATA)
    (y,) = builder.apply("double", stage(DOUBLE), [x], ["y"])
    (z,) = builder.apply("add", stage(ADD), [x, y], ["z"])
    graph = builder.build([z])
    validate(graph)
    assert [tensor.name for tensor in graph.tensors] == ["x", "y", "z"]
    assert [operation.name for operation in graph.operations] == ["double", "add"]
    assert graph.operations[1].inputs == (0, 1)
    assert graph.outputs == (2,)
    assert graph.tensors[2].shape == (3,)
    assert graph.tensors[2].role is Role.ACTIVATION


def test_dead_operations_and_tensors_are_dropped(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    x = builder.tensor("x", (3,), Role.DATA)
    builder.tensor("unused", (3,), Role.PARAMETER)
    (y,) = builder.apply("kept", stage(DOUBLE), [x], ["y"])
    (dead,) = builder.apply("dead", stage(DOUBLE), [y], ["d"])
    builder.apply("deader", stage(DOUBLE), [dead], ["e"])
    graph = builder.build([y])
    validate(graph)
    assert [operation.name for operation in graph.operations] == ["kept"]
    assert [tensor.name for tensor in graph.tensors] == ["x", "y"]


def test_an_update_is_kept_and_waits_for_the_last_reader(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    w = builder.tensor("w", (3,), Role.PARAMETER)
    (y,) = builder.apply("early", stage(DOUBLE), [w], ["y"])
    (z,) = builder.apply("reads w", stage(ADD), [y, w], ["z"])
    (v,) = builder.apply("late", stage(DOUBLE), [z], ["v"])
    builder.apply("update", stage(ADD), [w, y], ["new w"], phase=Phase.UPDATE, aliases=[w])
    graph = builder.build([v])
    validate(graph)
    assert [operation.name for operation in graph.operations] == ["early", "reads w", "update", "late"]
    new = next(tensor for tensor in graph.tensors if tensor.name == "new w")
    assert graph.tensors[new.alias or 0].name == "w"
    assert new.role is Role.PARAMETER


def test_an_update_of_a_tensor_that_another_update_reads_comes_after_it(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    w = builder.tensor("w", (3,), Role.PARAMETER)
    s = builder.tensor("s", (3,), Role.STATE)
    builder.apply("update s", stage(ADD), [s, w], ["new s"], phase=Phase.UPDATE, aliases=[s])
    builder.apply("update w", stage(DOUBLE), [w], ["new w"], phase=Phase.UPDATE, aliases=[w])
    graph = builder.build([])
    validate(graph)
    assert [operation.name for operation in graph.operations] == ["update s", "update w"]


def test_a_taken_tensor_name_is_refused_and_an_operation_name_numbered(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    x = builder.tensor("x", (3,), Role.DATA)
    with pytest.raises(GraphError, match="two tensors are named 'x'"):
        builder.tensor("x", (3,), Role.DATA)
    assert builder.unique_tensor_name("x") == "x:2"
    builder.apply("double", stage(DOUBLE), [x], ["y"])
    (z,) = builder.apply("double", stage(DOUBLE), [x], ["z"])
    assert [operation.name for operation in builder.build([z]).operations] == ["double:2"]


def test_the_number_of_inputs_and_outputs_is_checked(stage: MAKE) -> None:
    builder = GraphBuilder("g")
    x = builder.tensor("x", (3,), Role.DATA)
    with pytest.raises(GraphError, match=r"takes 2 tensors and makes 1, but 1 and 1"):
        builder.apply("sum", stage(ADD), [x], ["y"])


def test_a_name_used_often_is_numbered_without_looking_at_all_numbers_again() -> None:
    class Asked(set[str]):
        times = 0

        def __contains__(self, name: object) -> bool:
            self.times += 1
            return super().__contains__(name)

    names = Names()
    names.taken = taken = Asked()
    for _ in range(1000):
        taken.add(names.unused("sum"))
    assert taken == {"sum", *(f"sum:{number}" for number in range(2, 1001))}
    assert taken.times < 5000
