"""Fixtures of the tests of graphs: stages from text, and an evaluator that runs a graph in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tofu import tdl
from tofu.dataflow.graph import Graph
from tofu.operators.stages.stage import Stage, derived

Array = npt.NDArray[np.float64]
Evaluate = Callable[[Graph, Mapping[str, Array]], dict[str, Array]]


@pytest.fixture(scope="session")
def stage() -> Callable[[str], Stage]:
    """Return a stage from the text of a description without attributes, stars or further stages."""

    def make(text: str) -> Stage:
        return derived(tdl.parse(text))

    return make


@pytest.fixture(scope="session")
def evaluate() -> Evaluate:
    """Run a graph's operations one after the other; every tensor's value by name."""

    def run(graph: Graph, fed: Mapping[str, Array]) -> dict[str, Array]:
        values: dict[int, Array] = {}
        for tensor in graph.tensors:
            if tensor.role.persistent and tensor.alias is None:
                assert fed[tensor.name].shape == tensor.shape, tensor
                values[tensor.index] = np.asarray(fed[tensor.name], tensor.dtype)
        for operation in graph.operations:
            names = operation.bound.description.tensor_names
            inputs = {name: values[index] for name, index in zip(names, operation.inputs, strict=True)}
            for index, value in zip(operation.outputs, operation.bound.compute(inputs), strict=True):
                assert value.shape == graph.tensors[index].shape, operation.name
                values[index] = value
        return {tensor.name: values[tensor.index] for tensor in graph.tensors}

    return run
