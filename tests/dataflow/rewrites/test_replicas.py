"""Local gradients: their sum is the gradient, they have the bits of workers' terms, and some are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Operation, Role
from tofu.dataflow.rewrites.edit import GraphEdit
from tofu.dataflow.rewrites.replicas import LocalGradients
from tofu.dataflow.validate import validate
from tofu.errors import GraphError
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.tdl import format as format_description

WORKERS = 4


def gradients(graph: Graph) -> list[str]:
    return [
        t.name for t in graph.tensors if t.role is Role.GRADIENT and t.name.endswith(("_weight)", "_bias)"))
    ]


def local(graph: Graph, workers: int, names: list[str]) -> dict[str, Operation]:
    """Return the operation that makes the local gradients of each tensor."""
    soap, edit = find_soap(graph, workers), GraphEdit(graph)
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    made = LocalGradients(edit, workers, soap.batch, terms, {})
    number = {tensor.name: tensor.index for tensor in graph.tensors}
    found = {edit.tensors[made.of(number[name])].name: name for name in names}
    outputs = tuple(t.index for t in edit.tensors if t.name in found)
    edit.graph = replace(graph, outputs=(*graph.outputs, *outputs))
    changed = edit.finish()
    validate(changed)
    return {
        found[changed.tensors[each.outputs[0]].name]: each
        for each in changed.operations
        if changed.tensors[each.outputs[0]].name in found
    }


def inputs_of(operation: Operation, seed: int) -> Mapping[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(shape) for name, shape in operation.bound.shapes.items()}


@pytest.mark.parametrize("model", ["mlp", "lenet"])
def test_local_gradients_are_those_of_each_share_of_the_samples(model: str) -> None:
    graph = tofu.models.get(model, batch=8).training_graph()
    original = {graph.tensors[o.outputs[0]].name: o for o in graph.operations}
    found = local(graph, WORKERS, gradients(graph))
    assert len(found) == len(gradients(graph)) > 3
    for name, operation in found.items():
        given = inputs_of(operation, 3)
        (mine,) = operation.bound.compute(given)
        for replica in range(WORKERS):
            masked = dict(given)
            share = slice(2 * replica, 2 * replica + 2)
            first = operation.bound.description.tensor_names[0]
            masked[first] = np.zeros_like(given[first])
            masked[first][share] = given[first][share]
            (expected,) = original[name].bound.compute(masked)
            np.testing.assert_allclose(mine[replica], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("workers", [2, 4])
def test_kernels_compute_what_descriptions_say(workers: int) -> None:
    """The kernel runs the operator's own for each block; the description is interpreted."""
    graph = tofu.models.get("lenet", batch=4).training_graph()
    for operation in local(graph, workers, ["grad(conv1_bias)", "grad(fc2_weight)"]).values():
        given = inputs_of(operation, 5)
        for mine, expected in zip(
            operation.bound.compute(given), operation.bound.interpret(given), strict=True
        ):
            np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-12)


def test_the_replica_is_a_variable_along_which_work_is_split() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    operation = local(graph, WORKERS, ["grad(fc3_weight)"])["grad(fc3_weight)"]
    assert format_description(operation.bound.description) == (
        "def FullyConnected_product_grad_weight(grad_0, data, weight):\n"
        "    return lambda replica=4, h=weight.shape[0], k=weight.shape[1]: "
        "Sum(lambda n=2: pad(grad_0[replica * 2 + n, h], 0) * data[replica * 2 + n, k])\n"
    )
    assert operation.bound.kind("replica") == "concat"
    strategy = next(s for s in operation.bound.strategies if s.variable == "replica")
    assert strategy.input_regions(worker=1, workers=4)["grad_0"] == ((2, 4), (0, 10))


def test_what_is_not_a_sum_over_samples_is_refused() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    with pytest.raises(GraphError, match=r"'relu1.grad.Activation.data' cannot be applied to each replica"):
        local(graph, WORKERS, ["grad(fc1_output)"])
    with pytest.raises(GraphError, match="no operation makes 'fc1_weight'"):
        local(graph, WORKERS, ["fc1_weight"])


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    described = tofu.parse(
        "def squares(replica):\n    return lambda j: Sum(lambda n: replica[n, j] * replica[n, j])"
    )
    graph = tofu.inference_graph(sym.apply(described, sym.Variable("x"), name="s"), {"x": (8, 3)})
    (output,) = graph.outputs
    operation = local(graph, WORKERS, [graph.tensors[output].name])[graph.tensors[output].name]
    assert operation.bound.variables == ("replica_", "j", "n")
