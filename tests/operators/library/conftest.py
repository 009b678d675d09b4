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
    values = run_forward(operator, attributes, tensors)
    shapes = {name: array.shape for name, array in tensors.items()}
    custom = operator.gradient(attributes, shapes)
    if custom is None:
        return _derived(operator, attributes, values, shapes, heads)
    values |= {f"grad_{k}": head for k, head in enumerate(heads)}
    produced = []
    for stage in custom.stages:
        results = stage.bind({name: values[name].shape for name in stage.inputs}).compute(values)
        values.update(
            {
                name: result
                for name, result in zip(stage.produces, results, strict=True)
                if "output" not in name
            }
        )
        produced.append(results)
    return {name: produced[place.stage][place.output] for name, place in custom.targets.items()}


def _derived(
    operator: Operator,
    attributes: Mapping[str, object],
    values: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    heads: tuple[Array, ...],
) -> dict[str, Array]:
    found: dict[str, Array] = {f"output_{k}": head for k, head in enumerate(heads)}
    for stage in reversed(operator.stages(attributes, shapes)):
        if not any(name in found for name in stage.produces):
            continue
        inner = {f"grad_{k}": found[name] for k, name in enumerate(stage.produces) if name in found}
        inner |= {f"output_{k}": values[name] for k, name in enumerate(stage.produces)}
        known = {**values, **inner}
        for tensor in stage.inputs:
            for adjoint in stage.adjoint(tensor):
                bound = adjoint.bind({name: known[name].shape for name in adjoint.inputs})
                (term,) = bound.compute(known)
                found[tensor] = found[tensor] + term if tensor in found else term
    return {name: found[name] for name in shapes if name in found}
