from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.training import gradient_graph
from tofu.models.model import Model
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

Values = Mapping[str, Array]


def _start(graph: Graph, data: Values) -> dict[str, Array]:
    """`data`, and small random values for what is learned; scales are near one."""
    generator = np.random.default_rng(7)
    values = {}
    for tensor in graph.tensors:
        if tensor.role is Role.SCALAR:
            values[tensor.name] = np.full(tensor.shape, 0.05)
        elif tensor.role is Role.PARAMETER and tensor.alias is None:
            values[tensor.name] = 0.1 * generator.standard_normal(tensor.shape)
            values[tensor.name] += tensor.name.endswith("_gamma")
        elif tensor.role is Role.DATA:
            values[tensor.name] = data[tensor.name]
    return values


def _train(graph: Graph, workers: int, steps: int, data: Values) -> dict[str, Array]:
    """Outputs and everything kept after some iterations; bytes moved are those planned."""
    program = lower(graph, partition(graph, workers))
    with Executor(program) as executor:
        for name, value in _start(graph, data).items():
            executor.write(name, value)
        for _ in range(steps):
            executor.run()
            assert executor.fetched_bytes == program.planned_bytes
        kept = [tensor for tensor in graph.tensors if tensor.role.persistent and tensor.alias is None]
        kept += [graph.tensors[index] for index in graph.outputs]
        return {tensor.name: executor.read(tensor.name) for tensor in kept}


@pytest.fixture
def assert_trains_alike() -> Callable[..., None]:
    """`(graph, data, steps=2, workers=8)`: in float64, many workers learn what one does, and something."""

    def compare(graph: Graph, data: Values, steps: int = 2, workers: int = 8) -> None:
        assert all(tensor.dtype == "float64" for tensor in graph.tensors)
        single = _train(graph, 1, steps, data)
        for name, value in _train(graph, workers, steps, data).items():
            np.testing.assert_allclose(value, single[name], rtol=1e-7, atol=1e-10, err_msg=name)
        start = _start(graph, data)
        updated = [graph.tensors[t.alias].name for t in graph.tensors if t.alias is not None]
        learned = [name for name in updated if name in start and name.endswith("_weight")]
        assert learned
        for name in learned:
            assert np.isfinite(single[name]).all(), name
            assert (single[name] != start[name]).any(), f"{name} was not trained"

    return compare


@pytest.fixture
def assert_gradients_are_numeric() -> Callable[..., None]:
    """`(model, data, loss)`: gradients of all parameters are slopes of the loss of the first output."""

    def compare(model: Model, data: Values, loss: Callable[[Array], float]) -> None:
        names = list(model.parameters)
        graph = gradient_graph(model.symbol, model.shapes, names, dtype="float64")
        generator = np.random.default_rng(11)
        start = {name: 0.5 * generator.standard_normal(shape) for name, shape in model.parameters.items()}
        with Executor(lower(graph, partition(graph, 1))) as executor:
            for name, value in data.items():
                executor.write(name, value)

            def outputs(values: Values) -> list[Array]:
                for name, value in values.items():
                    executor.write(name, value)
                executor.run()
                return [executor.read(graph.tensors[index].name) for index in graph.outputs]

            _, *gradients = outputs(start)
            assert len(gradients) == len(names)
            for name, gradient in zip(names, gradients, strict=True):
                direction = generator.standard_normal(gradient.shape)
                above, below = (
                    loss(outputs({**start, name: start[name] + step * direction})[0])
                    for step in (1e-5, -1e-5)
                )
                slope = (above - below) / 2e-5
                assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-4, abs=1e-6), name

    return compare
