"""Values and gradients of one operator, stage by stage, as the training graph computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tofu.operators.operator import Operator

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="session")
def forward() -> Callable[..., dict[str, Array]]:
    """`forward(operator, attributes, tensors, training=True)`: tensors and all that the stages produce."""
    return run_forward


@pytest.fixture(scope="session")
def gradients() -> Callable[..., dict[str, Array]]:
    """`gradients(operator, attributes, tensors, heads)`: the gradient of each tensor that has one."""
    return run_gradients


@pytest.fixture(scope="session")
def example() -> Callable[..., dict[str, Array]]:
    """`example(operator)`: values for the operator's example."""
    return example_values


def example_values(operator: Operator, seed: int = 0) -> dict[str, Array]:
    assert operator.example is not None
    return operator.example.tensors(np.random.default_rng(seed))


def run_forward(
    operator: Operator,
    attributes: Mapping[str, object],
    tensors: Mapping[str, Array],
    training: bool = True,
) -> dict[str, Array]:
    values = dict(tensors)
    shapes = {name: array.shape for name, array in tensors.items()}
    for stage in operator.stages(attributes, shapes, training):
        bound = stage.bind({name: values[name].shape for name in stage.inputs})
        values.update(zip(stage.produces, bound.compute(values), strict=True))
    return values


def run_gradients(
    operator: Operator,
    attributes: Mapping[str, object],
    tensors: Mapping[str, Array],
    heads: tuple[Array, ...],
) -> dict[str, Array]:
    return operator.gradients(tensors, heads, **attributes)
